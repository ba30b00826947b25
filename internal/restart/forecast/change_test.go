// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// A change that waits is served when it can be, and one that has not happened is not foreseen.
func TestForecastOfChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		restarts []*tidekeeperv1.ScheduledRestart
		want     []string
	}{
		"for the window": {
			[]*tidekeeperv1.ScheduledRestart{nightly("shop", "web", window("30 3 * * *", 30*time.Minute), changed("03:30:00"))},
			[]string{"shop/web 03:30:00 to 03:31:01 Succeeded"},
		},
		"for a slot": {
			[]*tidekeeperv1.ScheduledRestart{nightly("shop", "a", changed("02:58:00")), nightly("shop", "b", changed("02:50:00"))},
			[]string{"shop/a 02:59:00 to 03:00:01 Succeeded", "shop/b 03:00:01 to 03:01:02 Succeeded"},
		},
		"nothing has changed": {
			[]*tidekeeperv1.ScheduledRestart{nightly("shop", "web", changed("02:50:00"), func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextChangeTime = nil })},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := play(t, func(in *Input) { in.Restarts, in.Limits.MaxConcurrent = tt.restarts, 1 })
			if diff := cmp.Diff(tt.want, lines(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
