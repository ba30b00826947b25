// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Slots say which slots of the restart budget are used up while a restart waits for one.
type Slots struct {
	// Limit is the number of all slots, 0 if that is unknown, and Share the number of slots that the
	// restarts of a namespace may use at the same time.
	Limit, Share int
	// ShareUsed reports whether the restarts of the namespace use all slots of its share, and these are
	// not all that there are.
	ShareUsed bool
}

// budgetGate is closed while a restart has no slot of the budget. The slot is asked for last, when
// all other gates are open.
type budgetGate struct {
	hasSlot bool
	slots   Slots
	// waitingSince is since when the restart that needs a slot has waited.
	waitingSince time.Time
	// age is how long a restart uses its slot, 0 until it ends, and outlived says that the restart in
	// progress no longer uses its slot.
	age      time.Duration
	outlived bool
}

func (g *budgetGate) blocks() *blocker {
	if g.hasSlot {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonBudgetExhausted, message: g.usedUp("is") + g.freeAgain()}
}

// usedUp says of which slots none is free, or was free until now.
func (g *budgetGate) usedUp(verb string) string {
	whose, used := "the restart budget", g.slots.Limit
	if g.slots.ShareUsed {
		whose, used = "this namespace's share of the restart budget", g.slots.Share
	}
	if g.slots.Limit == 0 {
		return fmt.Sprintf("%s %s used up", whose, verb)
	}
	return fmt.Sprintf("%s %s used up: %d of %d slots", whose, verb, used, g.slots.Limit)
}

// freeAgain says when a slot is free again.
func (g *budgetGate) freeAgain() string {
	switch {
	case g.slots.Limit == 0:
		return ""
	case g.age == 0:
		return "; a slot is free again when one of these restarts ends"
	default:
		return fmt.Sprintf("; a slot is free again when one of these restarts ends, or has taken %s", g.age)
	}
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
