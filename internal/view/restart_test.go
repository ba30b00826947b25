// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/workload"
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

// TestRestartDuringAFreeze checks that a start during a Freeze waits until the Freeze has ended and
// a window is open, or is missed if its deadline is earlier.
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

// TestRestartOfAWorkloadAsItIs checks that the summary shows the effect of the workload's current
// state on a future start, unless the status already shows it. It ignores DaemonSet pods on nodes
// that are not ready.
func TestRestartOfAWorkloadAsItIs(t *testing.T) {
	healthy := workload.State{Kind: "Deployment", Name: "web", Pods: 1, Updates: 1, Rollout: workload.Progress{Available: true}, Availability: workload.Progress{Available: true}}
	state := func(change func(*workload.State)) forecast.Target {
		s := healthy
		change(&s)
		return forecast.Target{State: &s}
	}
	paused := state(func(s *workload.State) { s.Paused = true })
	for _, tc := range []struct {
		name   string
		target forecast.Target
		change func(*tidekeeperv1.ScheduledRestart)
		want   string
	}{
		{"healthy", forecast.Target{State: &healthy}, nil, ""},
		{"paused", paused, nil, "TargetPaused: Deployment web is paused"},
		{"rolling", state(func(s *workload.State) { s.Rollout.Updating = true }), nil, "TargetRolling: Deployment web is already being rolled out"},
		{"not healthy", state(func(s *workload.State) { s.Rollout.Available = false }), nil, "TargetUnhealthy: Deployment web is not healthy"},
		{"need not be healthy", state(func(s *workload.State) { s.Rollout.Available = false }), func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Precondition = tidekeeperv1.PreconditionNone }, ""},
		{"gone", forecast.Target{}, nil, "TargetNotFound: there is no Deployment web in this namespace"},
		{"a node is not ready", state(func(s *workload.State) { s.PerNode, s.Rollout.Available = true, false }), nil, ""},
		{"STATUS says it", paused, func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: tidekeeperv1.ReasonTargetPaused}}
		}, ""},
		{"nothing is to come", paused, func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = nil }, ""},
	} {
		r := aRestart("web", "@hourly", func(r *tidekeeperv1.ScheduledRestart) {
			r.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}
			r.Status.NextScheduleTime = at(noon.Add(time.Hour))
			if tc.change != nil {
				tc.change(r)
			}
		})
		shown := RestartOf(&r, nil)
		shown.AddTarget(&r, tc.target, noon)
		got := ""
		if g := shown.Workload; g != nil {
			got = g.Reason + ": " + g.Message
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
