// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const (
	// missesAtOnce is the number of misses in a row that are recorded as they occur.
	missesAtOnce = 3
	// After that they are recorded together, at intervals that double from the first to
	// the last.
	firstQuiet = time.Minute
	lastQuiet  = 15 * time.Minute
)

// resolve decides about a tick without starting a restart.
func (d *decider) resolve(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	d.recordSkippedTicks(c)
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.tick}, Trigger: c.trigger, Outcome: outcome, Reason: reason, Message: message,
	})
	d.advancePast(c)
}

// miss resolves a tick for which no restart could be started. If a schedule misses one
// tick after the other, not each is recorded at once, see [decider.quietUntil].
func (d *decider) miss(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	if c.trigger == tidekeeperv1.TriggerRequest {
		d.resolve(c, outcome, reason, message)
		return
	}
	if quiet := d.quietUntil(); !quiet.IsZero() {
		d.wakeAt(quiet)
		if next, ok := d.ticks().Next(c.tick); ok && d.blocker(d.in.Now) == nil {
			d.wakeAt(next.Add(d.in.Offset))
		}
		return
	}
	record := tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.tick}, Trigger: c.trigger, Outcome: outcome, Reason: reason, Message: message,
	}
	if reason != tidekeeperv1.ReasonDeadlineExceeded && d.witnessed(c) {
		record.EarlierTicks = int32(c.earlier)
	} else {
		d.recordSkippedTicks(c)
	}
	d.recordMiss(record)
	d.advancePast(c)
}

// witnessed reports whether a candidate and all its earlier ticks became due while this
// process was deciding.
func (d *decider) witnessed(c *candidate) bool { return !c.first.Before(d.in.LeadingSince) }

// recordMiss records ticks for which no restart could be started.
func (d *decider) recordMiss(record tidekeeperv1.RestartRecord) {
	d.record(record)
	d.out.Status.ConsecutiveMisses++
}

// recordSkippedTicks records the ticks before a candidate that are not decided yet, as
// one: they are not made up for.
func (d *decider) recordSkippedTicks(c *candidate) {
	if c.earlier == 0 {
		return
	}
	reason, message := tidekeeperv1.ReasonSuperseded, "a later tick was due as well"
	if waited := d.waitedFor(); waited != "" && d.witnessed(c) {
		reason, message = waited, "not started before a later tick was due"
	}
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.before}, Trigger: c.trigger, Outcome: tidekeeperv1.OutcomeMissed,
		Reason: reason, Message: message, EarlierTicks: int32(c.earlier - 1),
	})
}

// quietUntil returns the time before which no more missed ticks are recorded, zero if
// they may be now. Each costs a write of the status and an event, and a schedule that
// can never start anything may tick every minute.
func (d *decider) quietUntil() time.Time {
	n := d.out.Status.ConsecutiveMisses - missesAtOnce
	last, ok := d.lastRecorded()
	if n < 0 || !ok {
		return time.Time{}
	}
	until := last.Add(min(firstQuiet<<min(n, 10), lastQuiet))
	if last.After(d.in.Now) || !until.After(d.in.Now) {
		return time.Time{}
	}
	return until
}

// missing returns what causes one tick after the other to be missed, or nil, if the next
// tick comes before misses are recorded again. The condition then names it all the time,
// and not only between two writes for each tick.
func (d *decider) missing() *blocker {
	next, quiet := d.out.Status.NextScheduleTime, d.quietUntil()
	if d.out.Status.Active != nil || next == nil || quiet.IsZero() || !next.Add(d.in.Offset).Before(quiet) {
		return nil
	}
	blocked := d.blocker(d.in.Now)
	if blocked == nil || blocked.permanent || blocked.reason == tidekeeperv1.ReasonTargetNotFound {
		return nil
	}
	return blocked
}
