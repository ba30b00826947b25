// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// FirstUnserved returns the first tick after the latest tick in the history for which no restart is
// missing (see isServed). Without such a later tick in the history, it returns the tick of the
// restart in progress or the next tick; zero if there is none.
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
	// The history is full, so the last success may be earlier than its oldest entry.
	if last := status.LastSuccessfulTime; last != nil && len(status.History) >= int(spec.HistoryLimit) {
		if next, ok := ticks.Next(last.Time); ok && (first.IsZero() || next.Before(first)) {
			return next
		}
	}
	return first
}

// isServed reports whether a history entry shows that no restart is missing for its tick (its
// scheduled time). This is the case if the target was restarted, possibly by another program. It is
// also the case if the schedule was suspended or orphaned, or a Freeze was in force.
func isServed(record *tidekeeperv1.RestartRecord) bool {
	return record.Outcome == tidekeeperv1.OutcomeSucceeded ||
		record.Outcome == tidekeeperv1.OutcomeMissed && record.Reason == tidekeeperv1.ReasonFrozen ||
		record.Outcome == tidekeeperv1.OutcomeSkipped &&
			(record.Reason == tidekeeperv1.ReasonAlreadyRestarted || record.Reason == tidekeeperv1.ReasonSuspended || record.Reason == tidekeeperv1.ReasonOrphaned)
}

// isIrrelevant reports whether a history entry must be ignored because another entry covers its
// tick (its scheduled time), or because the schedule no longer has that tick.
func isIrrelevant(record *tidekeeperv1.RestartRecord) bool {
	return record.Outcome == tidekeeperv1.OutcomeSkipped &&
		(record.Reason == tidekeeperv1.ReasonSuperseded || record.Reason == tidekeeperv1.ReasonEdited)
}

// TooOldAt returns the time from which on a restart for the age of pods or for a change counts as
// overdue, since it should be complete by that time. due is the due time of the restart; zero if
// there is none. A result of zero means never.
func TooOldAt(spec *tidekeeperv1.ScheduledRestartSpec, due time.Time) time.Time {
	if due.IsZero() {
		return time.Time{}
	}
	return due.Add(seconds(spec.StartingDeadlineSeconds) + seconds(spec.ProgressDeadlineSeconds))
}

// OverdueAt returns the time from which on a schedule counts as overdue, if first is the first tick
// for which a restart is missing. By that time, the restart for the tick after first should be
// complete. A result of zero means never.
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
