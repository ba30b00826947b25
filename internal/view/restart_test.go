// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

func TestLastSuccessBefore(t *testing.T) {
	day := noon.Add(-24 * time.Hour)
	for _, tc := range []struct {
		last *metav1.Time
		want bool
	}{{nil, true}, {at(day.Add(-time.Second)), true}, {at(day), false}, {at(noon), false}} {
		r := aRestart("web", "@daily")
		r.Status.LastSuccessfulTime = tc.last
		if got := LastSuccessBefore(&r, day); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.last, got, tc.want)
		}
	}
}

// A start during a freeze waits for its end, and for a window after that, or is missed at its
// deadline.
func TestRestartDuringAFreeze(t *testing.T) {
	in := func(d time.Duration) time.Time { return noon.Add(d) }
	freeze := func(name string, from, until time.Duration) period.Period {
		return period.Period{Name: name, From: in(from), Until: in(until)}
	}
	byAge := func(r *tidekeeperv1.ScheduledRestart) {
		r.Status.NextScheduleTime, r.Status.NextAgeTime = nil, at(in(time.Hour))
	}
	for _, tc := range []struct {
		name    string
		freezes []period.Period
		change  func(*tidekeeperv1.ScheduledRestart)
		want    string
	}{
		{"none", nil, nil, ""},
		{"one before it", []period.Period{freeze("a", 0, time.Hour)}, nil, ""},
		{"one that ends after the deadline", []period.Period{freeze("a", 0, 3*time.Hour)}, nil, ", missed by Freeze a"},
		{"one that ends before it", []period.Period{freeze("a", 0, 90*time.Minute)}, nil, ", held by Freeze a until 13:30"},
		{"one after the other", []period.Period{freeze("a", 0, 90*time.Minute), freeze("b", 80*time.Minute, 110*time.Minute)}, nil, ", held by Freeze b until 13:50"},
		{"no window is open at its end", []period.Period{freeze("a", 0, 90*time.Minute)}, func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 13 * * *", DurationSeconds: 600}}
		}, ", missed by Freeze a"},
		{"pods that are too old have no deadline", []period.Period{freeze("a", 0, 3*time.Hour)}, byAge, ", held by Freeze a until 15:00"},
		{"it is due already", []period.Period{freeze("a", 0, 20*time.Minute)}, func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime = at(in(-10 * time.Minute))
		}, ", held by Freeze a until 12:20"},
	} {
		r := aRestart("web", "@hourly", func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.StartingDeadlineSeconds, r.Status.NextScheduleTime = 3600, at(in(time.Hour))
			if tc.change != nil {
				tc.change(r)
			}
		})
		shown := RestartOf(&r, nil)
		shown.AddFreezes(&r, tc.freezes, noon)
		if got := shown.Frozen.Text(func(t time.Time) string { return t.Format("15:04") }); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
