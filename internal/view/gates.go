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

// Gates lists the gates of a restart, the conditions for its start. The restart starts only if all
// gates are open.
type Gates struct {
	// Starts is set if a restart that is requested now would start immediately.
	Starts bool            `json:"starts"`
	Gates  []decision.Gate `json:"gates"`
}

// GatesOf returns the gates of a restart, the conditions for its start. The gate of the restart
// budget is the parameter budget, and comes last. The other gates are determined by the input.
func GatesOf(in decision.Input, budget decision.Gate) Gates {
	g := Gates{Starts: true, Gates: append(decision.Gates(in), budget)}
	for _, gate := range g.Gates {
		g.Starts = g.Starts && (gate.Open || gate.Name == decision.GateSchedule)
	}
	return g
}

// GateManager is the gate (start condition) that is closed while no manager is running. It is only
// listed when it is closed.
const GateManager decision.GateName = "Manager"

// CloseWithoutManager inserts the closed gate GateManager as the first gate. problem is the
// evidence that no manager is running.
func (g *Gates) CloseWithoutManager(problem string) {
	g.Starts = false
	g.Gates = slices.Insert(g.Gates, 0, decision.Gate{Name: GateManager, Reason: "NoLeader", Message: problem + ": nothing is started until one does"})
}

// Slots counts the slots of the restart budget that are in use. A restart in progress uses a slot,
// but not longer than the duration SlotAge.
type Slots struct {
	// Of is the ScheduledRestart that needs a slot of the restart budget. A slot that Of itself
	// uses is not counted.
	Of *tidekeeperv1.ScheduledRestart
	Settings

	used, here int
}

// Add counts the ScheduledRestart r if it uses a slot of the restart budget at the given time.
func (s *Slots) Add(r *tidekeeperv1.ScheduledRestart, now time.Time) {
	if a := r.Status.Active; a == nil || r.UID == s.Of.UID || now.Sub(a.StartedTime.Time) > s.SlotAge {
		return
	}
	if s.used++; r.Namespace == s.Of.Namespace {
		s.here++
	}
}

// Gate returns the gate (start condition) of the restart budget. Its message ends with the given
// note, and with the budget flags whose values are unknown and assumed to be the defaults.
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

// Obstacles returns the reasons why a restart that is requested at the time tick would wait or
// would not start. It ignores the effects of a restart that is already in progress.
func (g *Gates) Obstacles(r *tidekeeperv1.ScheduledRestart, tick time.Time) []string {
	var said []string
	// A restart that is requested outside the restart windows becomes due when the next window
	// opens.
	due := tick
	if _, windows, err := decision.ParseSchedule(&r.Spec); err == nil {
		if opens, ok := windows.OpensAt(tick); ok {
			due = opens
		}
	}
	deadline := due.Add(time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second)
	for _, gate := range g.Gates {
		own := r.Status.Active != nil && gate.Name == decision.GateHealth // The restart in progress itself makes the workload unhealthy.
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
