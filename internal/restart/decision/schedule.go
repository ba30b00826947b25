// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// scheduleTrigger computes the ticks of the schedule (the scheduled times of restarts) for which a
// window is open. status.nextScheduleTime is the next undecided tick.
type scheduleTrigger struct {
	state   *state
	ticks   schedule.Ticks
	history *history
	// last holds the last result of the method candidate, and is overwritten by the next call. In a
	// forecast, most candidates are ticks of a schedule, so reusing this memory saves most
	// allocations.
	last candidate
}

func (t *scheduleTrigger) times(tick time.Time) (due, deadline time.Time) {
	due = tick.Add(t.ticks.Offset)
	return due, due.Add(t.ticks.Deadline)
}

// candidate returns the latest due tick (scheduled time), together with the earlier ticks that are
// also due; nil if no tick is due.
func (t *scheduleTrigger) candidate() *candidate {
	next := t.state.status.NextScheduleTime
	if next == nil {
		return nil
	}
	first, upTo := next.UTC(), t.state.now.Add(-t.ticks.Offset)
	if first.After(upTo) {
		return nil
	}
	latest, between, ok := t.ticks.Latest(first, upTo)
	c := &t.last
	if !ok {
		*c = candidateOf(t, tidekeeperv1.TriggerSchedule, first)
		return c
	}
	*c = candidateOf(t, tidekeeperv1.TriggerSchedule, latest)
	c.first, c.earlier, c.before = first, between+1, first
	if before, _, ok := t.ticks.Latest(first, latest.Add(-time.Second)); ok {
		c.before = before
	}
	return c
}

func (t *scheduleTrigger) confirm() Need { return NeedNothing }

func (t *scheduleTrigger) pass(c *candidate) { t.advance(c.tick) }

// upcoming returns the next undecided tick (scheduled time) of the schedule; nil if there is none.
func (t *scheduleTrigger) upcoming() *candidate {
	next := t.state.status.NextScheduleTime
	if next == nil {
		return nil
	}
	return newCandidate(t, tidekeeperv1.TriggerSchedule, next.UTC())
}

// edited updates the trigger after an edit of the spec. If a tick was already due, and the new
// schedule also has this tick, it is decided under the new spec. retargeted is true if the edit has
// changed the target.
func (t *scheduleTrigger) edited(retargeted bool) {
	status := t.state.status
	status.NoTickUntil = nil
	next := status.NextScheduleTime
	switch {
	case next == nil:
	case next.After(t.state.now):
		status.NextScheduleTime = nil
	case t.state.stopped() != "":
		// Do nothing, because the method find will record the tick as skipped, with the reason for
		// which the schedule is stopped.
	case retargeted:
		t.skip(*next, tidekeeperv1.ReasonEdited, "the target was edited before the restart was started")
	case !t.has(next.Time):
		t.skip(*next, tidekeeperv1.ReasonEdited, "the schedule or its windows were edited before the restart was started, and no longer have this tick")
	}
}

// skip records the tick next, which is in the status, as skipped, and removes it from the status.
func (t *scheduleTrigger) skip(next metav1.Time, reason, message string) {
	t.history.record(tidekeeperv1.RestartRecord{
		ScheduledTime: next, Trigger: tidekeeperv1.TriggerSchedule,
		Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: message,
	})
	t.state.status.NextScheduleTime = nil
}

// has reports whether the schedule has a tick (a scheduled time) at the given time.
func (t *scheduleTrigger) has(tick time.Time) bool {
	at, ok := t.ticks.Next(tick.Add(-time.Second))
	return ok && at.Equal(tick)
}

// find searches for the next tick after base, unless a next tick is known. If the schedule does not
// run, it removes the next tick instead; a tick that is already due is recorded as skipped.
func (t *scheduleTrigger) find(base time.Time) {
	status := t.state.status
	next := status.NextScheduleTime
	if reason := t.state.stopped(); reason != "" {
		if next != nil && !next.After(t.state.now) {
			t.skip(*next, reason, "the schedule was stopped before the restart was started")
		}
		status.NextScheduleTime, status.NoTickUntil = nil, nil
		return
	}
	until := status.NoTickUntil
	if next != nil || until != nil && t.state.now.Before(until.Time) {
		// The search is expensive, so do not repeat it for the period that the last search covered.
		return
	}
	if until != nil && until.Time.Before(base) {
		base = until.Time // There is no tick before this time, according to the last search.
	}
	t.advance(base)
}

// advance sets status.nextScheduleTime to the first tick after the given time. If the search finds
// none, it records the time until which there is no tick.
func (t *scheduleTrigger) advance(after time.Time) {
	status := t.state.status
	status.NextScheduleTime, status.NoTickUntil = nil, nil
	switch next, until, ok := t.ticks.Search(after); {
	case ok:
		status.NextScheduleTime = &metav1.Time{Time: next}
	case !until.IsZero():
		status.NoTickUntil = &metav1.Time{Time: until.Truncate(time.Second)}
	}
}

// leave makes the given tick (scheduled time), which waits, the next undecided tick in the status.
// This drops the ticks before it.
func (t *scheduleTrigger) leave(before time.Time) {
	t.state.status.NextScheduleTime = &metav1.Time{Time: before}
}

// wakeAtNext schedules the next decision for the next tick, or for the continuation of the search
// for it. While a restart is in progress, it schedules none for the tick, since the restart has to
// end first. It also writes the start time of the next tick's restart to the status.
func (t *scheduleTrigger) wakeAtNext(wake *alarm) {
	status, idle := t.state.status, t.state.status.Active == nil
	if until := status.NoTickUntil; until != nil {
		wake.set(until.Time)
	}
	status.NextStartTime = nil
	next := status.NextScheduleTime
	if next == nil {
		return
	}
	start := next.Add(t.ticks.Offset)
	if idle && start.After(t.state.now) {
		wake.set(start)
	}
	if t.state.spec.SpreadSeconds == 0 {
		return
	}
	if next.After(t.state.now) {
		// A tick in the future starts at the offset of this ScheduledRestart, even if the previous
		// tick had another offset.
		start = next.Add(place(t.state.restart))
	}
	status.NextStartTime = &metav1.Time{Time: start}
	if idle && start.After(t.state.now) {
		wake.set(start)
	}
}
