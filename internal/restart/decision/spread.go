// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// place returns the time from a tick (a scheduled time) to the start of its restart. It depends on
// the namespace and the name of the ScheduledRestart.
func place(restart *tidekeeperv1.ScheduledRestart) time.Duration {
	if restart.Spec.SpreadSeconds == 0 {
		return 0 // In most cases, this check suffices, and the hash of the name need not be computed.
	}
	return schedule.Spread(restart.Namespace, restart.Name, seconds(restart.Spec.SpreadSeconds))
}

// Offset returns the time from the next tick to the start of its restart. A due tick keeps the
// start time that any version of the manager has written to the status. Otherwise its deadline
// could pass before it was ever due.
func Offset(restart *tidekeeperv1.ScheduledRestart, now time.Time) time.Duration {
	spread := seconds(restart.Spec.SpreadSeconds)
	next, start := restart.Status.NextScheduleTime, restart.Status.NextStartTime
	switch {
	case spread == 0 || next == nil || next.After(now) || restart.Status.ObservedGeneration != restart.Generation:
		return place(restart)
	case start == nil:
		// Earlier versions of the manager did not write the start time to the status. They derived
		// it from the UID.
		return schedule.SpreadByUID(string(restart.UID), spread)
	}
	if given := start.Sub(next.Time); given >= 0 && given < spread {
		return given
	}
	return place(restart)
}
