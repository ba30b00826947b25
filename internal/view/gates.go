// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Gates says whether a restart would be started now.
type Gates struct {
	// Starts says whether a restart would be started if it were requested now.
	Starts bool            `json:"starts"`
	Gates  []decision.Gate `json:"gates"`
}

// GatesOf returns the gates of a restart: the gates of the decision, and the gate of the budget.
func GatesOf(in decision.Input, budget decision.Gate) Gates {
	g := Gates{Starts: true, Gates: append(decision.Gates(in), budget)}
	for _, gate := range g.Gates {
		g.Starts = g.Starts && (gate.Open || gate.Name == decision.GateSchedule)
	}
	return g
}

// Slots counts the slots of the restart budget that other restarts use.
type Slots struct {
	// Of is the restart that would need a slot.
	Of *tidekeeperv1.ScheduledRestart
	Settings

	used, here int
}

// Add counts the slot of a restart, if it uses one at a time.
func (s *Slots) Add(r *tidekeeperv1.ScheduledRestart, now time.Time) {
	if a := r.Status.Active; a == nil || r.UID == s.Of.UID || now.Sub(a.StartedTime.Time) > s.SlotAge {
		return
	}
	if s.used++; r.Namespace == s.Of.Namespace {
		s.here++
	}
}

// Gate returns the gate of the budget; note is added to its message. Settings that are assumed and
// count here are named.
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

// Obstacles names the reasons why a restart that is requested now waits or will not be started,
// except another restart in progress.
func (g *Gates) Obstacles(r *tidekeeperv1.ScheduledRestart, tick time.Time) []string {
	var said []string
	// A request is due while a window is open.
	due := tick
	if _, windows, err := decision.ParseSchedule(&r.Spec); err == nil {
		if opens, ok := windows.OpensAt(tick); ok {
			due = opens
		}
	}
	deadline := due.Add(time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second)
	for _, gate := range g.Gates {
		own := r.Status.Active != nil && gate.Name == decision.GateHealth // The restart in progress is the reason.
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
