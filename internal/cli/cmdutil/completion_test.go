// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestTriggersOf checks that the completion of a ScheduledRestart's name says by what it is
// restarted, also if it has no schedule.
func TestTriggersOf(t *testing.T) {
	nightly := tidekeeperv1.CronExpression("0 3 * * *")
	for want, spec := range map[string]tidekeeperv1.ScheduledRestartSpec{
		"0 3 * * *": {Schedule: nightly, MaxPodAgeSeconds: 60},
		"by age":    {MaxPodAgeSeconds: 60, OnConfigChange: "ConfigMaps"},
		"on change": {OnConfigChange: "ConfigMaps"},
	} {
		if got := triggersOf(&spec); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
