// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// aheadClaimer claims ticks before they are due, so that only the patch of the target remains when they are.
// A current blocker may be gone by then.
type aheadClaimer struct {
	state    *state
	triggers *triggers
	gates    gates
	// ahead is the time before a tick at which it may be claimed; 0 means never.
	ahead   time.Duration
	hasSlot bool
	wake    *alarm
}

// choose chooses a tick to claim, and sets the alarm for the next one.
func (a *aheadClaimer) choose() choice {
	c := a.triggers.upcoming()
	if c == nil || a.ahead == 0 || evicts(a.state.spec) {
		return choice{}
	}
	if from := c.due.Add(-a.ahead); a.state.now.Before(from) {
		a.wake.set(from)
		return choice{}
	}
	switch {
	case !c.due.After(a.state.now):
		// The tick is overdue, and is recorded as missed later, see [misses.quietUntil].
		return choice{}
	case a.gates.first(c.due, a.triggers.lastDue(c.due)) != nil || a.state.restarted(c.tick):
		return choice{}
	case !a.hasSlot:
		return choice{needs: NeedSpareSlot}
	default:
		return choice{start: c}
	}
}

// clockStep is the minimum step back of a clock that takes a claim back.
const clockStep = time.Minute

// lateSend is the delay from which on a tick that is sent late gets a new start time, which needs a status
// write first.
const lateSend = 10 * time.Second

// earlyClaim is a tick that this process has claimed before it was due and has not tried to send.
type earlyClaim struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	gates    gates
	ahead    time.Duration
	launcher *launcher
	wake     *alarm
}

// takesBack reports whether the tick must not be sent any more, because a fact that the restart depends on
// has changed. The claim is then taken back, and the tick is decided as if it had never been claimed.
func (c *earlyClaim) takesBack() bool {
	restart, now := c.state.restart, c.state.now
	active := restart.Status.Active
	due := active.StartedTime.Time
	_, deadline := c.triggers.of(active.Trigger).times(active.ScheduledTime.Time)
	switch {
	case restart.Generation != restart.Status.ObservedGeneration, c.triggers.request.withdrawn(active):
		return true
	case now.Before(due):
		return now.Before(due.Add(-c.ahead - clockStep))
	case now.After(deadline), c.gates.first(now, c.triggers.lastDue(now)) != nil, string(c.state.target.UID) != active.TargetUID:
		return true
	default:
		return c.state.restarted(active.ScheduledTime.Time)
	}
}

// keep waits until the tick is due, and then sends it. Until then the status is not written: the write would
// be lost if the claim is taken back. unchanged is set if the status stays as it is.
func (c *earlyClaim) keep() (unchanged bool, need Need) {
	due := c.state.status.Active.StartedTime.Time
	if c.state.now.Before(due) {
		c.wake.set(due)
		return true, NeedNothing
	}
	restarted := c.active.send(lateSend)
	return !restarted, c.launcher.send(due)
}
