// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// aheadClaimer claims ticks before they are due, that is, it writes their restarts to
// status.active. At the due time, only the patch of the target remains to be sent. A tick whose
// restart could not start is not claimed, since it may be able to start once it is due.
type aheadClaimer struct {
	state    *state
	triggers *triggers
	gates    gates
	// ahead is the time before a restart is due at which it may be written to the status; 0 means
	// never.
	ahead   time.Duration
	hasSlot bool
	wake    *alarm
}

// choose chooses a restart to write to the status now, before it is due. If there is none, it
// schedules the next decision for the time at which the next restart may be written.
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
		// The tick (the scheduled time) is already due, but will only later be recorded as missed.
		// See [misses.quietUntil].
		return choice{}
	case a.gates.first(c.due, a.triggers.lastDue(c.due)) != nil || a.state.restarted(c.tick):
		return choice{}
	case !a.hasSlot:
		return choice{needs: NeedSpareSlot}
	default:
		return choice{start: c}
	}
}

// clockStep limits how far the clock may be set back while a tick (the scheduled time of a restart)
// is claimed. A tick is claimed shortly before it is due: its restart is written to status.active.
// If the current time is more than clockStep before the earliest time at which this may happen, the
// tick loses its claim: the restart is removed from the status, and the tick is decided as if the
// restart had never been written there.
const clockStep = time.Minute

// lateSend is the delay from which on the sending of a tick changes the start time of its restart.
// A tick that is sent later than planned by less than lateSend keeps the planned start time, and
// the status need not be written before the tick is sent.
const lateSend = 10 * time.Second

// earlyClaim is a tick that this process claimed (wrote to status.active) before the tick was due,
// and has not tried to send to the target yet.
type earlyClaim struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	gates    gates
	ahead    time.Duration
	launcher *launcher
	wake     *alarm
}

// takesBack reports whether the restart must not start because a fact that it depends on has
// changed. The restart is then removed from the status, and its tick is decided as if the restart
// had never been written there.
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

// keep waits until the restart is due, and then sends its tick (its scheduled time) to the target.
// While it waits, it does not change the status, since the change would be lost if the restart were
// removed from the status. unchanged is true if the status remains the same.
func (c *earlyClaim) keep() (unchanged bool, need Need) {
	due := c.state.status.Active.StartedTime.Time
	if c.state.now.Before(due) {
		c.wake.set(due)
		return true, NeedNothing
	}
	restarted := c.active.send(lateSend)
	return !restarted, c.launcher.send(due)
}
