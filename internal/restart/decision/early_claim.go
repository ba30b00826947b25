// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// aheadClaimer claims a tick that is due soon, so that sending it is all that is left to do
// when it is due. A blocker of now may be gone by then.
type aheadClaimer struct {
	state    *state
	triggers *triggers
	gates    gates
	// ahead is how long before it is due a tick may be claimed; 0 means not at all.
	ahead   time.Duration
	hasSlot bool
	wake    *alarm
}

// choose chooses a tick to claim, and wakes when there will be a tick.
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
		// It is overdue, and is recorded as missed later, see [misses.quietUntil].
		return choice{}
	case a.gates.first(c.due, a.triggers.lastDue(c.due)) != nil || a.state.restarted(c.tick):
		return choice{}
	case !a.hasSlot:
		return choice{needs: NeedSpareSlot}
	default:
		return choice{start: c}
	}
}

// clockStep is how far a clock must be set back for a claim to be taken back.
const clockStep = time.Minute

// lateSend is how much later than planned a tick must be sent for its restart to count as started
// only then, which takes a write of the status first.
const lateSend = 10 * time.Second

// earlyClaim is a tick that this process has claimed ahead of its time, and has not tried to send.
type earlyClaim struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	gates    gates
	ahead    time.Duration
	launcher *launcher
	wake     *alarm
}

// takesBack reports whether the tick must not be sent any more: a fact that a restart depends on has
// changed since, or has changed when it is due. The claim is then taken back, and the tick decided as
// if it had never been claimed.
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

// keep waits until the tick is due, and sends it then. Until then nothing else is written to the status:
// it would be lost if the claim is taken back. It reports whether the status stays as it was.
func (c *earlyClaim) keep() (unchanged bool, need Need) {
	due := c.state.status.Active.StartedTime.Time
	if c.state.now.Before(due) {
		c.wake.set(due)
		return true, NeedNothing
	}
	restarted := c.active.send(lateSend)
	return !restarted, c.launcher.send(due)
}
