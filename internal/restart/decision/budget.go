// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// budgetGate is closed while a restart has no slot of the budget. The slot is asked for last, when
// all other gates are open.
type budgetGate struct {
	hasSlot bool
	// waitingSince is since when the restart that needs a slot has waited.
	waitingSince time.Time
	// age is how long a restart uses its slot, 0 until it ends, and outlived says that the restart in
	// progress no longer uses its slot.
	age      time.Duration
	outlived bool
}

func (g *budgetGate) blocks(time.Time) *blocker {
	if g.hasSlot {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonBudgetExhausted, message: "the restart budget is used up"}
}

// take reports whether a restart that has waited since a time has a slot.
func (g *budgetGate) take(since time.Time) bool {
	if !g.hasSlot {
		g.waitingSince = since
	}
	return g.hasSlot
}

// follow takes in that a restart has been in progress since a time, and wakes when its slot is free.
func (g *budgetGate) follow(started, now time.Time, wake *alarm) {
	if g.age == 0 {
		return
	}
	outlives := started.Add(g.age)
	if g.outlived = !now.Before(outlives); !g.outlived {
		wake.set(outlives)
	}
}

// renew takes in that the restart in progress has ended, or starts only now.
func (g *budgetGate) renew() { g.outlived = false }
