// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Gates describes whether a restart could start now.
type Gates struct {
	// Starts is set if a restart requested now would start immediately.
	Starts bool            `json:"starts"`
	Gates  []decision.Gate `json:"gates"`
}

// GatesOf returns the gates of a decision, with the gate of the budget.
func GatesOf(in decision.Input, budget decision.Gate) Gates {
	g := Gates{Starts: true, Gates: append(decision.Gates(in), budget)}
	for _, gate := range g.Gates {
		g.Starts = g.Starts && (gate.Open || gate.Name == decision.GateSchedule)
	}
	return g
}

// GateManager is the gate that is closed while no manager runs. It is listed only then.
const GateManager decision.GateName = "Manager"

// CloseWithoutManager adds the closed gate of the manager in front of the others, with the evidence that no
// manager runs.
func (g *Gates) CloseWithoutManager(problem string) {
	g.Starts = false
	g.Gates = slices.Insert(g.Gates, 0, decision.Gate{Name: GateManager, Reason: "NoLeader", Message: problem + ": nothing is started until one does"})
}

// Slots counts the slots of the restart budget that other restarts use.
type Slots struct {
	// Of is the restart that needs a slot.
	Of *tidekeeperv1.ScheduledRestart
	Settings

	used, here int
}

// Add counts a restart if it uses a slot at the given time.
func (s *Slots) Add(r *tidekeeperv1.ScheduledRestart, now time.Time) {
	if a := r.Status.Active; a == nil || r.UID == s.Of.UID || now.Sub(a.StartedTime.Time) > s.SlotAge {
		return
	}
	if s.used++; r.Namespace == s.Of.Namespace {
		s.here++
	}
}

// Gate returns the gate of the budget, with note appended to its message. The message names settings that are
// assumed.
func (s *Slots) Gate(note string) decision.Gate {
	share := budget.Share(s.MaxConcurrent, s.NamespaceShare)
	if assumed := s.AssumedText(budget.FlagMaxConcurrent, budget.FlagNamespaceShare); assumed != "" {
		note += " (assumed: " + assumed + ")"
	}
	g := decision.Gate{
		Name: decision.GateBudget, Open: s.used < s.MaxConcurrent && s.here < share,
		Message: fmt.Sprintf("other restarts use %d of %d slots, and %d of the %d that this namespace may have%s", s.used, s.MaxConcurrent, s.here, share, note),
	}
	if !g.Open {
		g.Reason = tidekeeperv1.ReasonBudgetExhausted
	}
	return g
}

// Obstacles returns the reasons for which a restart requested now waits or does not start, except another
// restart in progress.
func (g *Gates) Obstacles(r *tidekeeperv1.ScheduledRestart, tick time.Time) []string {
	var said []string
	// A request becomes due when a window is open.
	due := tick
	if _, windows, err := decision.ParseSchedule(&r.Spec); err == nil {
		if opens, ok := windows.OpensAt(tick); ok {
			due = opens
		}
	}
	deadline := due.Add(time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second)
	for _, gate := range g.Gates {
		own := r.Status.Active != nil && gate.Name == decision.GateHealth // The workload is only unhealthy because of the restart in progress.
		if gate.Open || own || gate.Name == decision.GateSchedule || gate.Name == decision.GateProgress {
			continue
		}
		text := gate.Message
		if gate.Opens.After(deadline) {
			text += ", and it is missed at its deadline, " + workload.FormatTime(deadline)
		}
		said = append(said, text)
	}
	return said
}
