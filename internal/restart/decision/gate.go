// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// blocker is a reason for which a restart cannot start now, such as a freeze.
type blocker struct {
	reason  string
	message string
	// permanent is true if waiting would not help. The restart is then skipped.
	permanent bool
	// until is the time at which the blocker ends without user action; zero if unknown.
	until time.Time
	// again is the time at which the blocker must be checked again; zero if an event reports its
	// end.
	again time.Time
}

// gate is a condition that must hold before a restart starts. An implementation contains only the
// facts that the condition depends on.
type gate interface {
	// blocks returns the reason for which the gate is closed at the given time; nil if it is open.
	// due is the due time of the restart that would start then. See [triggers.lastDue].
	blocks(at, due time.Time) *blocker
	// describe describes to users whether the gate is open at the given time and, if not, why. due
	// is the due time of the restart that would start then, as for the method blocks.
	describe(at, due time.Time) Gate
}

// gates is an ordered list of gates. If several gates are closed, the first closed gate is
// reported.
type gates []gate

// first returns the blocker of the first gate that is closed at the given time; nil if all gates
// are open.
func (g gates) first(at, due time.Time) *blocker {
	for _, gate := range g {
		if b := gate.blocks(at, due); b != nil {
			return b
		}
	}
	return nil
}

// gateSet holds the gates that are checked together in a fixed order. The gates of the schedule,
// the restart in progress and the budget are checked in other steps of a decision.
type gateSet struct {
	target targetGate
	freeze freezeGate
	window windowGate
	order  orderGate
	health healthGate
	query  queryGate
	all    [6]gate
}

// open initializes the gates for the given input. past is the history, from which the window gate
// takes the duration of the last successful restart.
func (g *gateSet) open(in *Input, past *history) {
	spec := &in.Restart.Spec
	g.target = targetGate{ref: spec.TargetRef, target: in.Target, evicts: evicts(spec), unserved: in.Unserved, unreadable: in.Unreadable}
	g.freeze = freezeGate{freezes: in.Freezes}
	g.window = windowGate{windows: in.Windows, wanted: len(spec.Windows) > 0, invalid: in.Invalid, history: past}
	g.order = orderGate{names: spec.After, predecessors: in.After, cycle: in.Cycle, now: in.Now}
	g.health = healthGate{target: in.Target, evicts: evicts(spec), precondition: spec.Precondition}
	if in.Config != nil {
		g.health.missing = in.Config.Missing
	}
	g.query = queryGate{queried: in.Queried, answer: in.Answer, now: in.Now}
}

// inOrder returns the gates in the order in which users have to resolve their blockers. For
// example, the health of a workload is irrelevant while a restart could not replace its pods
// anyway.
func (g *gateSet) inOrder() gates {
	if g.all[0] == nil {
		g.all = [...]gate{&g.target, &g.freeze, &g.window, &g.order, &g.health, &g.query}
	}
	return g.all[:]
}

// rolling reports whether the health gate is the first closed gate, because the target's pods are
// being replaced.
func (g *gateSet) rolling(at, due time.Time) bool {
	if b := g.health.blocks(at, due); b == nil || b.reason != tidekeeperv1.ReasonTargetRolling {
		return false // Checking the health gate first avoids checking the other gates in most decisions.
	}
	return g.inOrder().first(at, due).reason == tidekeeperv1.ReasonTargetRolling
}
