// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// place returns how long after its ticks the restarts of a ScheduledRestart start: its
// place in the spread.
func place(restart *tidekeeperv1.ScheduledRestart) time.Duration {
	return schedule.Spread(restart.Namespace, restart.Name, seconds(restart.Spec.SpreadSeconds))
}

// Offset returns how long after the next tick its restart starts. That is the place in
// the spread, but a tick that is due keeps the start that any version of the manager
// has given it: otherwise its deadline could have passed before it was ever due.
func Offset(restart *tidekeeperv1.ScheduledRestart, now time.Time) time.Duration {
	spread := seconds(restart.Spec.SpreadSeconds)
	next, start := restart.Status.NextScheduleTime, restart.Status.NextStartTime
	switch {
	case spread == 0 || next == nil || next.After(now) || restart.Status.ObservedGeneration != restart.Generation:
		return place(restart)
	case start == nil:
		// Earlier versions do not record the start.
		return schedule.SpreadByUID(string(restart.UID), spread)
	}
	if given := start.Sub(next.Time); given >= 0 && given < spread {
		return given
	}
	return place(restart)
}
