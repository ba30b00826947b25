// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// launcher starts restarts: it first claims the tick (writes the restart to status.active), and
// then sends the tick to the target. If the manager crashes after the status write, [resender]
// sends the tick later. A tick that was claimed before it was due is sent by [earlyClaim].
type launcher struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	misses   *misses
	eviction *eviction
	sending  *sending
	wake     *alarm
	slotAge  time.Duration
}

// launch starts the restart of a candidate, and returns the next fact that the decision needs for
// this.
func (l *launcher) launch(c *candidate) Need {
	l.misses.recordEarlier(c)
	starts := l.active.claim(c, l.triggers.change.start())
	l.state.status.LastScheduleTime = &metav1.Time{Time: c.tick}
	l.misses.end()
	l.triggers.pass(c)
	if starts.After(l.state.now) {
		l.wake.set(starts)
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

// send sends the tick (the scheduled time) of the restart in progress to the target. due is the due
// time of that restart. It returns the next fact that the decision needs for this.
func (l *launcher) send(due time.Time) Need {
	active := l.state.status.Active
	l.wake.set(active.StartedTime.Add(seconds(l.state.spec.ProgressDeadlineSeconds)))
	if l.slotAge > 0 {
		l.wake.set(active.StartedTime.Add(l.slotAge))
	}
	return l.sending.send(active.ScheduledTime.Time, due)
}
