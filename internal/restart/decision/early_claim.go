// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// aheadClaimer claims ticks before they are due, so that only the patch of the target remains to be
// sent at the due time. A tick with a blocker is not claimed, since the blocker may have been
// removed by the time the tick is due.
type aheadClaimer struct {
	state    *state
	triggers *triggers
	gates    gates
	// ahead is the time before a tick at which it may be claimed; 0 means never.
	ahead   time.Duration
	hasSlot bool
	wake    *alarm
}

// choose chooses a tick to claim now. If there is none, it sets the alarm to the time at which the
// next tick may be claimed.
func (a *aheadClaimer) choose() choice {
	if a.ahead == 0 || evicts(a.state.spec) {
		return choice{}
	}
	c := a.triggers.upcoming()
	if c == nil {
		return choice{}
	}
	if from := c.due.Add(-a.ahead); a.state.now.Before(from) {
		a.wake.set(from)
		return choice{}
	}
	switch {
	case !c.due.After(a.state.now):
		// The tick is already due, and will be recorded as missed later. See [misses.quietUntil].
		return choice{}
	case a.gates.first(c.due, a.triggers.lastDue(c.due)) != nil || a.state.restarted(c.tick):
		return choice{}
	case !a.hasSlot:
		return choice{needs: NeedSpareSlot}
	default:
		return choice{start: c}
	}
}

// clockStep is the minimum step by which the clock must be set back for an early claim to be taken
// back.
const clockStep = time.Minute

// lateSend is the delay from which on the sending of a tick changes the start time of its restart.
// A tick that is sent later than planned by less than lateSend keeps the planned start time, and
// the status need not be written before the tick is sent.
const lateSend = 10 * time.Second

// earlyClaim is a tick that this process claimed before it was due and has not tried to send yet.
type earlyClaim struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	gates    gates
	ahead    time.Duration
	launcher *launcher
	wake     *alarm
}

// takesBack reports whether the tick must not be sent because a fact that the restart depends on
// has changed. The claim is then taken back, and the tick is decided as if it had never been
// claimed.
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

// keep waits until the claimed tick is due, and then sends it. Before that, it does not change the
// status, since a change would be lost if the claim is taken back. unchanged is true if the status
// remains the same.
func (c *earlyClaim) keep() (unchanged bool, need Need) {
	due := c.state.status.Active.StartedTime.Time
	if c.state.now.Before(due) {
		c.wake.set(due)
		return true, NeedNothing
	}
	restarted := c.active.send(lateSend)
	return !restarted, c.launcher.send(due)
}
