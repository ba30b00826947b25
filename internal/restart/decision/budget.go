// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Slots describes the limits of the restart budget that can keep a restart waiting for a slot.
type Slots struct {
	// Limit is the total number of slots; 0 if unknown. Share is the number of slots that a
	// namespace may use.
	Limit, Share int
	// ShareUsed is true if the namespace has used up its share, and the share is smaller than the
	// limit.
	ShareUsed bool
}

// budgetGate keeps a restart from starting while it has no slot of the restart budget. This
// condition is checked last, when all other conditions for a restart hold.
type budgetGate struct {
	hasSlot bool
	slots   Slots
	// waitingSince is the time since which a restart has waited for a slot; zero if no restart
	// waits.
	waitingSince time.Time
	// age is the maximum time for which a restart holds its slot; 0 means until the restart ends.
	// outlived is true if the restart in progress no longer holds a slot.
	age      time.Duration
	outlived bool
}

// budgetUsedUp is the reason for which a restart without a slot cannot start, if the limits of the
// restart budget are unknown.
var budgetUsedUp = blocker{reason: tidekeeperv1.ReasonBudgetExhausted, message: (&budgetGate{}).usedUp("is")}

func (g *budgetGate) blocks() *blocker {
	switch {
	case g.hasSlot:
		return nil
	case g.slots == Slots{}:
		return &budgetUsedUp
	}
	return &blocker{reason: tidekeeperv1.ReasonBudgetExhausted, message: g.usedUp("is") + g.freeAgain()}
}

// usedUp describes the limit of the restart budget that is exhausted. verb is "is" or "was".
func (g *budgetGate) usedUp(verb string) string {
	whose, used := "the restart budget", g.slots.Limit
	if g.slots.ShareUsed {
		whose, used = "this namespace's share of the restart budget", g.slots.Share
	}
	if g.slots.Limit == 0 {
		return whose + " " + verb + " used up"
	}
	return fmt.Sprintf("%s %s used up: %d of %d slots", whose, verb, used, g.slots.Limit)
}

// freeAgain describes when a slot of the restart budget becomes free; "" if the limits are unknown.
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

// take reports whether a restart that has waited since the given time has a slot. If the restart
// has no slot, take records the given time in waitingSince.
func (g *budgetGate) take(since time.Time) bool {
	if !g.hasSlot {
		g.waitingSince = since
	}
	return g.hasSlot
}

// follow determines whether the restart that started at the given time has exceeded the maximum
// time for which a restart holds its slot. Otherwise it schedules the next decision for the end of
// that time.
func (g *budgetGate) follow(started, now time.Time, wake *alarm) {
	if g.age == 0 {
		return
	}
	outlives := started.Add(g.age)
	if g.outlived = !now.Before(outlives); !g.outlived {
		wake.set(outlives)
	}
}

// renew records that no restart has outlived its slot. It is called when the restart in progress
// ends, and when a delayed restart gets its slot and starts only now.
func (g *budgetGate) renew() { g.outlived = false }
