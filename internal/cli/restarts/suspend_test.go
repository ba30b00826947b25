// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestNextStart checks that the message about a resumed restart describes the restart's trigger.
func TestNextStart(t *testing.T) {
	now := time.Date(2026, 6, 10, 0, 0, 0, 0, time.UTC)
	hourly := tidekeeperv1.RestartWindow{Schedule: "0 * * * *", DurationSeconds: 60}
	for _, c := range []struct {
		name string
		spec tidekeeperv1.ScheduledRestartSpec
		want string
	}{
		{"age", tidekeeperv1.ScheduledRestartSpec{MaxPodAgeSeconds: 864000}, ", when its pods are 10d old"},
		{"change", tidekeeperv1.ScheduledRestartSpec{OnConfigChange: tidekeeperv1.ConfigMapsOnly}, ", when its configuration changes"},
		{"both", tidekeeperv1.ScheduledRestartSpec{MaxPodAgeSeconds: 3600, OnConfigChange: tidekeeperv1.ConfigMapsOnly}, ", when its pods are 60m old and when its configuration changes"},
		{
			"outside of the windows", tidekeeperv1.ScheduledRestartSpec{Schedule: "30 * * * *", Windows: []tidekeeperv1.RestartWindow{hourly}},
			", but no tick of the schedule is inside a window until Fri 26 Jun 15:59 UTC (in 17d)",
		},
	} {
		r := &tidekeeperv1.ScheduledRestart{Spec: c.spec}
		if got := nextStart(r, now, time.UTC); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
