// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// observeSpec reacts to an edit of the spec. It returns the time after which ticks
// count if no next tick is known: a new schedule does not reach into the past, except
// for an object that no manager has seen yet. A tick that was already due is decided
// under the new spec, if the new schedule has it too.
func (d *decider) observeSpec() (base time.Time) {
	base = d.in.Now
	status := &d.out.Status
	if status.ObservedGeneration == d.in.Restart.Generation {
		return base
	}
	if status.ObservedGeneration == 0 {
		base = d.in.Restart.CreationTimestamp.Time
	}
	if last := status.LastScheduleTime; last != nil && last.After(base) && last.Time.Before(base.Add(24*time.Hour)) {
		// A clock was set back. Ticks up to the last started one are not started again.
		base = last.Time
	}
	retargeted := status.ObservedTargetRef != nil && !status.ObservedTargetRef.Equal(d.spec.TargetRef)
	status.ObservedGeneration = d.in.Restart.Generation
	d.noteTarget()
	status.ConsecutiveFailures, status.ConsecutiveMisses, status.NextAgeTime = 0, 0, nil
	status.NextChangeTime, status.NoTickUntil = nil, nil
	d.endDelays()
	if retargeted {
		status.LastAgeTime, status.LastChangeTime, status.ConfigHash = nil, nil, ""
	}
	next := status.NextScheduleTime
	switch {
	case next == nil:
	case next.After(d.in.Now):
		status.NextScheduleTime = nil
	case d.stopped() != "":
		// setNext skips the tick for that reason.
	case retargeted:
		d.skipNext(*next, tidekeeperv1.ReasonEdited, "the target was edited before the restart was started")
	case !d.hasTick(next.Time):
		d.skipNext(*next, tidekeeperv1.ReasonEdited, "the schedule or its windows were edited before the restart was started, and no longer have this tick")
	}
	return base
}

// skipNext skips the next tick.
func (d *decider) skipNext(next metav1.Time, reason, message string) {
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: next, Trigger: tidekeeperv1.TriggerSchedule,
		Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: message,
	})
	d.out.Status.NextScheduleTime = nil
}

// hasTick reports whether the schedule has a tick at that time.
func (d *decider) hasTick(tick time.Time) bool {
	at, ok := d.ticks().Next(tick.Add(-time.Second))
	return ok && at.Equal(tick)
}

// noteTarget records the target of the next tick. It is called only where the status
// changes anyway.
func (d *decider) noteTarget() {
	ref := d.spec.TargetRef
	d.out.Status.ObservedTargetRef = &ref
}

// stopped returns the reason for which the schedule does not run, or "".
func (d *decider) stopped() string {
	switch {
	case d.in.Invalid != nil:
		return tidekeeperv1.ReasonInvalidSchedule
	case d.in.Orphaned():
		return tidekeeperv1.ReasonOrphaned
	case d.out.Status.ConsecutiveFailures >= d.spec.FailureLimit:
		return tidekeeperv1.ReasonFailureLimit
	case d.spec.Suspend:
		return tidekeeperv1.ReasonSuspended
	default:
		return ""
	}
}

// setNext finds the next tick after base, if none is known. While the schedule does not
// run there is none, and a tick that was due is skipped.
func (d *decider) setNext(base time.Time) {
	next := d.out.Status.NextScheduleTime
	if reason := d.stopped(); reason != "" {
		if next != nil && !next.After(d.in.Now) {
			d.skipNext(*next, reason, "the schedule was stopped before the restart was started")
		}
		d.out.Status.NextScheduleTime, d.out.Status.NoTickUntil = nil, nil
		return
	}
	if next != nil || d.wasOutside() {
		return
	}
	if until := d.out.Status.NoTickUntil; until != nil && until.Time.Before(base) {
		base = until.Time // Ticks since then have been in no search yet.
	}
	d.advance(base)
}

// advance sets the next tick to the first one after a time, or until when there is none.
func (d *decider) advance(after time.Time) {
	d.out.Status.NextScheduleTime, d.out.Status.NoTickUntil = nil, nil
	switch next, until, ok := d.ticks().Search(after); {
	case ok:
		d.out.Status.NextScheduleTime = &metav1.Time{Time: next}
	case !until.IsZero():
		d.out.Status.NoTickUntil = &metav1.Time{Time: until.Truncate(time.Second)}
	}
}
