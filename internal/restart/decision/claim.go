// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// launcher starts restarts: first the status claims the tick, then the tick is sent.
// After a crash in between, [resender] sends the tick. A tick that is not due yet is sent when it is.
type launcher struct {
	state    *state
	triggers *triggers
	misses   *misses
	eviction *eviction
	sending  *sending
	wake     *alarm
	slotAge  time.Duration
}

// launch starts the restart for a tick. It returns the fact that sending the tick depends on.
func (l *launcher) launch(c *candidate) Need {
	l.misses.recordEarlier(c)
	status, ref := l.state.status, l.state.spec.TargetRef
	started := later(c.due, l.state.now)
	status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: metav1.Time{Time: c.tick}, StartedTime: metav1.Time{Time: started}, Trigger: c.trigger,
		TargetUID: string(l.state.target.UID), TargetRef: &ref,
	}
	status.Active.ConfigHash = l.triggers.change.start()
	status.LastScheduleTime = &metav1.Time{Time: c.tick}
	l.misses.end()
	l.triggers.pass(c)
	if started.After(l.state.now) {
		l.wake.set(started)
		return NeedNothing
	}
	if evicts(l.state.spec) {
		l.eviction.start()
		l.sending.begin(c.tick, c.due)
		l.wake.set(l.state.now)
		return NeedNothing
	}
	return l.send(c.due)
}

// send sends the tick of the restart in progress.
func (l *launcher) send(due time.Time) Need {
	active := l.state.status.Active
	l.wake.set(active.StartedTime.Add(seconds(l.state.spec.ProgressDeadlineSeconds)))
	if l.slotAge > 0 {
		l.wake.set(active.StartedTime.Add(l.slotAge))
	}
	return l.sending.send(active.ScheduledTime.Time, due)
}

// sending is the tick that is sent to the target.
type sending struct {
	query *queryGate
	// freezesLive says that the freezes were read from the API server.
	freezesLive bool
	// tick is the tick to send, begun is the tick of a restart that sends none, and due is when the
	// restart was due.
	tick, begun, due time.Time
}

// send sends a tick whose restart was due at a time, and returns the fact that this depends on.
func (s *sending) send(tick, due time.Time) Need {
	s.tick, s.due = tick, due
	return s.confirm(due)
}

// begin takes in that a restart is begun by the write of its claim alone.
func (s *sending) begin(tick, due time.Time) { s.begun, s.due = tick, due }

// confirm returns the next fact that the start of a restart depends on which was due at a time. The API
// server is asked for freezes last, as that takes the least time.
func (s *sending) confirm(due time.Time) Need {
	switch {
	case s.query.unanswered():
		return NeedAnswer
	case !s.freezesLive:
		s.due = due
		return NeedLiveFreezes
	default:
		return NeedNothing
	}
}

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
	case a.gates.first(c.due) != nil || a.state.restarted(c.tick):
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
	case now.After(deadline), c.gates.first(now) != nil, string(c.state.target.UID) != active.TargetUID:
		return true
	default:
		return c.state.restarted(active.ScheduledTime.Time)
	}
}

// keep waits until the tick is due, and sends it then. Until then nothing else is written to the status:
// it would be lost if the claim is taken back. It reports whether the status stays as it was.
func (c *earlyClaim) keep() (unchanged bool, need Need) {
	active := c.state.status.Active
	due := active.StartedTime.Time
	if c.state.now.Before(due) {
		c.wake.set(due)
		return true, NeedNothing
	}
	if unchanged = c.state.now.Sub(due) < lateSend; !unchanged {
		active.StartedTime = metav1.Time{Time: c.state.now}
	}
	return unchanged, c.launcher.send(due)
}
