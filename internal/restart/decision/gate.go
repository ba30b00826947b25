// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// blocker is a reason for which a restart cannot start now.
type blocker struct {
	reason  string
	message string
	// permanent is set if waiting does not help: the tick is skipped.
	permanent bool
	// until is the time at which the blocker ends by itself; zero if unknown.
	until time.Time
	// again is the time at which to check the blocker again; zero if an event reports its end.
	again time.Time
}

// gate is a condition that must hold before a restart starts. A gate knows only the facts that it depends on.
type gate interface {
	// blocks returns the reason for which the gate is closed at a time, nil if it is open. due is when the
	// restart was due that would be started then, see [triggers.lastDue].
	blocks(at, due time.Time) *blocker
	// describe returns the gate as people see it, for the same times.
	describe(at, due time.Time) Gate
}

// gates is an ordered list of gates: the first closed gate is reported.
type gates []gate

// first returns the blocker of the first gate that is closed at a time, or nil.
func (g gates) first(at, due time.Time) *blocker {
	for _, gate := range g {
		if b := gate.blocks(at, due); b != nil {
			return b
		}
	}
	return nil
}

// gateSet has the gates that are checked in a fixed order. The gates of the schedule, of the restart in
// progress and of the budget are checked in other steps of a decision.
type gateSet struct {
	target targetGate
	freeze freezeGate
	window windowGate
	order  orderGate
	health healthGate
	query  queryGate
	all    [6]gate
}

// open sets the gates for an input. past has the duration of the last restart.
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
	g.all = [...]gate{&g.target, &g.freeze, &g.window, &g.order, &g.health, &g.query}
}

// inOrder returns the gates in the order in which users have to remove their blockers: the health of a
// workload does not matter while its pods cannot be replaced anyway.
func (g *gateSet) inOrder() gates { return g.all[:] }

// rolling reports whether the pods of the target are being replaced, and no gate before that is closed.
func (g *gateSet) rolling(at, due time.Time) bool {
	if b := g.health.blocks(at, due); b == nil || b.reason != tidekeeperv1.ReasonTargetRolling {
		return false // That takes less time than to ask all gates.
	}
	return g.inOrder().first(at, due).reason == tidekeeperv1.ReasonTargetRolling
}
