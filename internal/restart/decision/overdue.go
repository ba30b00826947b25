// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// FirstUnserved returns the first tick since the last success that was not served, or else the next tick;
// zero if there is neither.
func FirstUnserved(spec *tidekeeperv1.ScheduledRestartSpec, status *tidekeeperv1.ScheduledRestartStatus, ticks schedule.Ticks) time.Time {
	var first time.Time
	if status.NextScheduleTime != nil {
		first = status.NextScheduleTime.Time
	}
	if status.Active != nil && status.Active.Trigger == tidekeeperv1.TriggerSchedule {
		first = status.Active.ScheduledTime.Time
	}
	for i := range status.History {
		record := &status.History[i]
		switch {
		case isServed(record):
			return first
		case record.Trigger == tidekeeperv1.TriggerSchedule && !isIrrelevant(record):
			first = record.ScheduledTime.Time
		}
	}
	// The history ends here, but the last success may be earlier.
	if last := status.LastSuccessfulTime; last != nil && len(status.History) >= int(spec.HistoryLimit) {
		if next, ok := ticks.Next(last.Time); ok && (first.IsZero() || next.Before(first)) {
			return next
		}
	}
	return first
}

// isServed reports whether a record shows that the schedule owed no restart at its tick: the target was
// restarted, even if by another program; the schedule was suspended or orphaned; or a Freeze was in force.
func isServed(record *tidekeeperv1.RestartRecord) bool {
	return record.Outcome == tidekeeperv1.OutcomeSucceeded ||
		record.Outcome == tidekeeperv1.OutcomeMissed && record.Reason == tidekeeperv1.ReasonFrozen ||
		record.Outcome == tidekeeperv1.OutcomeSkipped &&
			(record.Reason == tidekeeperv1.ReasonAlreadyRestarted || record.Reason == tidekeeperv1.ReasonSuspended || record.Reason == tidekeeperv1.ReasonOrphaned)
}

// isIrrelevant reports whether a record says nothing about whether the target was restarted, because another
// record does, or because the schedule no longer has the tick.
func isIrrelevant(record *tidekeeperv1.RestartRecord) bool {
	return record.Outcome == tidekeeperv1.OutcomeSkipped &&
		(record.Reason == tidekeeperv1.ReasonSuperseded || record.Reason == tidekeeperv1.ReasonEdited)
}

// TooOldAt returns the time at which a restart without a deadline that is due at the given time becomes
// overdue: when it should be complete. Zero means never.
func TooOldAt(spec *tidekeeperv1.ScheduledRestartSpec, due time.Time) time.Time {
	if due.IsZero() {
		return time.Time{}
	}
	return due.Add(seconds(spec.StartingDeadlineSeconds) + seconds(spec.ProgressDeadlineSeconds))
}

// OverdueAt returns the time at which a schedule with the given first unserved tick becomes overdue: when the
// restart for the following tick should be complete, too. Zero means never.
func OverdueAt(spec *tidekeeperv1.ScheduledRestartSpec, first time.Time, ticks schedule.Ticks) time.Time {
	if first.IsZero() {
		return time.Time{}
	}
	second, ok := ticks.Next(first)
	if !ok {
		return time.Time{}
	}
	return second.Add(ticks.Offset + seconds(spec.StartingDeadlineSeconds) + seconds(spec.ProgressDeadlineSeconds))
}
