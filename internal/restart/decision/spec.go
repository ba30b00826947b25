// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// edits updates the status after edits of the spec.
type edits struct {
	state    *state
	triggers *triggers
	misses   *misses
	ending   *ending
}

// observe reacts to an edit of the spec. It returns the time from which on the schedule is searched
// for the next tick (the next scheduled time), if the status has none. A new schedule does not
// apply to the past, except for a ScheduledRestart that no manager has observed yet.
func (e *edits) observe() (base time.Time) {
	status := e.state.status
	base = e.state.now
	if status.ObservedGeneration == e.state.restart.Generation {
		return base
	}
	if status.ObservedGeneration == 0 {
		base = e.state.restart.CreationTimestamp.Time
	}
	if last := status.LastScheduleTime; last != nil && last.After(base) && last.Time.Before(base.Add(24*time.Hour)) {
		// The clock was set back. The ticks (scheduled times) up to the last tick for which a
		// restart was started must not start a restart again.
		base = last.Time
	}
	retargeted := status.ObservedTargetRef != nil && !status.ObservedTargetRef.Equal(e.state.spec.TargetRef)
	status.ObservedGeneration = e.state.restart.Generation
	e.triggers.noteTarget()
	e.ending.forgetFailures()
	e.misses.end()
	e.triggers.age.edited(retargeted)
	e.triggers.change.edited(retargeted)
	e.triggers.schedule.edited(retargeted)
	return base
}
