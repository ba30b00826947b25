// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func TestForecastOfEvictions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		restarts []*tidekeeperv1.ScheduledRestart
		targets  map[TargetKey]Target
		want     []string
	}{
		{
			name: "by eviction, also where an update replaces no pods",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "left", evicting, took(5*time.Minute)), nightly("shop", "new", evicting), nightly("shop", "next", evicting),
			},
			targets: targets(func(s *workload.State) {
				s.OnDelete, s.Rollout, s.Availability = true, workload.Progress{Updating: true}, workload.Progress{Available: true}
			}, "left"),
			want: []string{
				"shop/left 03:00:00 to 03:05:01 Succeeded",
				"shop/new 03:00:00 to 03:01:01 Succeeded",
				"shop/next 03:01:01 to 03:02:02 Succeeded",
			},
		},
		{
			name:     "an eviction in progress",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", evicting, inProgress("02:58:30"), evictionInProgress)},
			targets:  targets(func(*workload.State) {}, "web"),
			want:     []string{"shop/web 02:58:30 to 02:59:31 Succeeded", "shop/web 03:00:00 to 03:01:01 Succeeded"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := play(t, func(in *Input) { in.Restarts, in.Targets = tt.restarts, tt.targets })
			if diff := cmp.Diff(tt.want, lines(f)); diff != "" {
				t.Errorf("the forecast (-want +got):\n%s", diff)
			}
		})
	}
}
