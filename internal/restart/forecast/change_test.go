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

// TestForecastOfChanges checks that the restart for a pending change starts as soon as possible,
// and that without a change no restart is forecast.
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

// TestForecastOfAChangeThatWaits checks that a change whose restart still waits at the end of the
// forecast is listed, even if changes are the only trigger of its ScheduledRestart.
func TestForecastOfAChangeThatWaits(t *testing.T) {
	oldPods := func(due string) func(*tidekeeperv1.ScheduledRestart) {
		return func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.MaxPodAgeSeconds, r.Status.NextAgeTime = 86400, metaAt(due)
		}
	}
	for name, tt := range map[string]struct {
		change func(*tidekeeperv1.ScheduledRestart)
		want   string
		by     tidekeeperv1.Trigger
	}{
		"a change alone":           {func(*tidekeeperv1.ScheduledRestart) {}, "shop/web tick 02:58:00 waits TargetPaused", tidekeeperv1.TriggerChange},
		"a change, and young pods": {oldPods("05:00:00"), "shop/web tick 02:58:00 waits TargetPaused", tidekeeperv1.TriggerChange},
		"older pods":               {oldPods("02:30:00"), "shop/web tick 02:30:00 waits TargetPaused", tidekeeperv1.TriggerAge},
	} {
		t.Run(name, func(t *testing.T) {
			f := play(t, func(in *Input) {
				in.Restarts = []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", changed("02:58:00"), tt.change)}
				in.Targets = targets(func(s *workload.State) { s.Paused = true }, "web")
			})
			if diff := cmp.Diff([]string{tt.want}, lines(f)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if got := f.Waiting[0].Trigger; got != tt.by {
				t.Errorf("trigger %s, want %s", got, tt.by)
			}
		})
	}
}
