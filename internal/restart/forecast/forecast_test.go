// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// play runs a forecast from 02:59 to 04:00, with restarts that take a minute. The given changes can
// modify the input.
func play(t *testing.T, changes ...func(*Input)) Forecast {
	t.Helper()
	in := Input{
		Limits: Limits{MaxConcurrent: 2, NamespaceShare: 100, SlotAge: 10 * time.Minute}, AssumedDuration: time.Minute,
		Now: at("02:59:00"), Until: at("04:00:00"), MostListed: 1000,
	}
	for _, change := range changes {
		change(&in)
	}
	return Run(t.Context(), in)
}

// TestMoreDueThanTheBudgetAllows checks that most of a hundred restarts that are due at the same
// time are missed if there are two slots and a deadline of 15 minutes.
func TestMoreDueThanTheBudgetAllows(t *testing.T) {
	f := play(t, func(in *Input) {
		for i := range 100 {
			in.Restarts = append(in.Restarts, nightly("shop", fmt.Sprintf("web-%02d", i)))
		}
	})
	want := Summary{Started: 30, Missed: 70, Assumed: 30, FirstStart: at("03:00:00"), LastCompletion: at("03:15:15")}
	if diff := cmp.Diff(want, f.Summary); diff != "" {
		t.Errorf("the summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Minute{{at("03:00:00"), 2, 98}, {at("03:01:00"), 2, 96}}, f.Minutes[:2]); diff != "" {
		t.Errorf("the first minutes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Tick{
		Namespace: "shop", Name: "web-30", Target: "Deployment/web-30", Tick: at("03:00:00"), Trigger: tidekeeperv1.TriggerSchedule,
		Outcome: tidekeeperv1.OutcomeMissed, Reason: tidekeeperv1.ReasonBudgetExhausted, Message: "not started before the deadline: the restart budget was used up",
	}, f.NotStarted[0]); diff != "" {
		t.Errorf("the first that is missed (-want +got):\n%s", diff)
	}
}

func TestForecast(t *testing.T) {
	for _, tt := range []struct {
		name     string
		restarts []*tidekeeperv1.ScheduledRestart
		targets  map[TargetKey]Target
		change   func(*Input)
		want     []string
	}{
		{
			name:     "a restart takes as long as the last one, or else what is assumed, and its slot a second longer",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "known", took(5*time.Minute)), nightly("shop", "new"), nightly("shop", "next")},
			want: []string{
				"shop/known 03:00:00 to 03:05:01 Succeeded",
				"shop/new 03:00:00 to 03:01:01 Succeeded",
				"shop/next 03:01:01 to 03:02:02 Succeeded",
			},
		},
		{
			name: "a namespace has its share of the budget",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("greedy", "1"), nightly("greedy", "2"), nightly("greedy", "3"), nightly("modest", "x"),
			},
			change: func(in *Input) { in.Limits.MaxConcurrent, in.Limits.NamespaceShare = 4, 50 },
			want: []string{
				"greedy/1 03:00:00 to 03:01:01 Succeeded",
				"greedy/2 03:00:00 to 03:01:01 Succeeded",
				"modest/x 03:00:00 to 03:01:01 Succeeded",
				"greedy/3 03:01:01 to 03:02:02 Succeeded",
			},
		},
		{
			name: "other namespaces are played, and not reported",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("elsewhere", "x", requestedAt("02:59:00")), nightly("elsewhere", "y"), nightly("shop", "web"),
			},
			change: func(in *Input) { in.Limits.MaxConcurrent, in.Namespace = 1, "shop" },
			// The restart of x completes at 03:00:01. The slot then goes to y.
			want: []string{"shop/web 03:01:02 to 03:02:03 Succeeded"},
		},
		{
			name:     "suspended",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Suspend = true }))},
		},
		{
			name:     "paused, and stays so",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web")},
			targets:  targets(func(s *workload.State) { s.Paused = true }, "web"),
			want:     []string{"shop/web tick 03:00:00 Missed TargetPaused"},
		},
		{
			name:     "it does not exist",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web")},
			targets:  map[TargetKey]Target{keyOf("web"): {}},
			want:     []string{"shop/web tick 03:00:00 Missed TargetNotFound"},
		},
		{
			name:     "its strategy replaces no pod",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web")},
			targets:  targets(func(s *workload.State) { s.OnDelete = true }, "web"),
			want:     []string{"shop/web tick 03:00:00 Skipped StrategyOnDelete"},
		},
		{
			name:     "a partition keeps all its pods",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web")},
			targets:  targets(func(s *workload.State) { s.Partitioned = true }, "web"),
			want:     []string{"shop/web tick 03:00:00 Skipped StrategyPartition"},
		},
		{
			name: "broken, and restarted nevertheless",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "api"), nightly("shop", "web", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
			},
			targets: targets(func(s *workload.State) { s.Rollout.Available = false }, "api", "web"),
			want: []string{
				"shop/web 03:00:00 to 03:01:01 Succeeded",
				"shop/api tick 03:00:00 Missed TargetUnhealthy",
			},
		},
		{
			name:     "nodes of a DaemonSet that are not ready are left out",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web")},
			targets:  targets(func(s *workload.State) { s.PerNode, s.Rollout.Available = true, false }, "web"),
			want:     []string{"shop/web 03:00:00 to 03:01:01 Succeeded"},
		},
		{
			name:     "a rollout in progress completes first",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", took(5*time.Minute))},
			targets:  targets(func(s *workload.State) { s.Rollout = workload.Progress{Updating: true} }, "web"),
			want:     []string{"shop/web 03:04:01 to 03:09:02 Succeeded"},
		},
		{
			name: "a restart in progress has a slot until it is complete",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "busy", inProgress("02:58:00"), took(4*time.Minute)), nightly("shop", "web"),
			},
			targets: targets(func(s *workload.State) {
				s.RestartedAt, s.LastTick, s.Rollout = "2026-06-10T02:58:00Z", "2026-06-10T02:58:00Z", workload.Progress{Updating: true}
			}, "busy"),
			change: func(in *Input) { in.Limits.MaxConcurrent = 1 },
			want: []string{
				"shop/busy 02:58:00 to 03:02:01 Succeeded",
				"shop/web 03:02:01 to 03:03:02 Succeeded",
				"shop/busy 03:03:02 to 03:07:03 Succeeded",
			},
		},
		{
			name:     "a restart in progress of a workload that could not be read",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "busy", inProgress("02:58:30"))},
			change:   func(in *Input) { in.Until = at("02:59:50") },
			want:     []string{"shop/busy 02:58:30 to 02:59:31 Succeeded"},
		},
		{
			name:     "a restart in progress that has taken longer than the last one completes at once",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "busy", inProgress("02:50:00"))},
			change:   func(in *Input) { in.Until = at("02:59:50") },
			want:     []string{"shop/busy 02:50:00 to 02:59:00 Succeeded"},
		},
		{
			name:     "claimed, and due in a second",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", inProgress("02:59:01"), requestedAt("02:59:01"))},
			change:   func(in *Input) { in.Until = at("02:59:30") },
			want:     []string{"shop/web 02:59:01 to - in progress"},
		},
		{
			name: "a request waits for a slot",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "web", requestedAt("02:58:40")), nightly("shop", "z", inProgress("02:58:30"), requestedAt("02:58:30")),
			},
			change: func(in *Input) { in.Limits.MaxConcurrent, in.Until = 1, at("02:59:50") },
			want: []string{
				"shop/z 02:58:30 to 02:59:31 Succeeded",
				"shop/web 02:59:31 to - in progress",
			},
		},
		{
			name:     "a request and a tick that wait together are served by one restart",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", requestedAt("03:00:20"))},
			targets:  targets(func(s *workload.State) { s.Rollout = workload.Progress{Updating: true} }, "web"),
			change:   func(in *Input) { in.AssumedDuration = 3 * time.Minute },
			want: []string{
				"shop/web 03:02:01 to 03:05:02 Succeeded",
				"shop/web tick 03:00:00 Skipped Superseded",
			},
		},
		{
			name:     "a slot is used for its age, and the restart continues",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "slow", took(20*time.Minute)), nightly("shop", "web")},
			change:   func(in *Input) { in.Limits.MaxConcurrent, in.Limits.SlotAge = 1, 5*time.Minute },
			want: []string{
				"shop/slow 03:00:00 to 03:20:01 Succeeded",
				"shop/web 03:05:00 to 03:06:01 Succeeded",
			},
		},
		{
			name:     "longer than its own deadline",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", took(40*time.Minute))},
			want:     []string{"shop/web 03:00:00 to 03:30:00 Failed Timeout"},
		},
		{
			name: "two schedules of a workload do not restart it at the same time",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "a", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name = "web" })),
				nightly("shop", "b", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name, s.Schedule = "web", "1 3 * * *" })),
			},
			want: []string{
				"shop/a 03:00:00 to 03:01:01 Succeeded",
				"shop/b 03:01:01 to 03:02:02 Succeeded",
			},
		},
		{
			name:     "a tick outside of the windows does not count, and one that a window reaches waits",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "out", window("30 3 * * *", time.Hour)), nightly("shop", "web", window("10 3 * * *", time.Hour))},
			want:     []string{"shop/web 03:10:00 to 03:11:01 Succeeded"},
		},
		{
			name:     "a request waits for a window",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", window("30 3 * * *", time.Minute), requestedAt("02:58:00"))},
			want:     []string{"shop/web 03:30:00 to 03:31:01 Succeeded"},
		},
		{
			name:     "a request waits for a window beyond the end",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", window("0 5 * * *", time.Hour), requestedAt("02:58:00"))},
			want:     []string{"shop/web tick 02:58:00 waits WindowClosed"},
		},
		{
			name: "a freeze: what waits starts when it ends, by the budget, or is missed",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("free", "web"), nightly("shop", "a"), nightly("shop", "b"), nightly("shop", "early", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.StartingDeadlineSeconds = 300 })),
			},
			change: func(in *Input) {
				in.Limits.MaxConcurrent = 1
				in.Freezes = map[string][]period.Period{"shop": {{Name: "f", Reason: "r", From: at("02:00:00"), Until: at("03:10:00")}}}
			},
			want: []string{
				"free/web 03:00:00 to 03:01:01 Succeeded",
				"shop/a 03:10:00 to 03:11:01 Succeeded",
				"shop/b 03:11:01 to 03:12:02 Succeeded",
				"shop/early tick 03:00:00 Missed Frozen",
			},
		},
		{
			name: "one comes after another that is due at the same time, or is missed with it",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "a", after("b")), nightly("shop", "b", after("c")), nightly("shop", "c", took(5*time.Minute)), nightly("shop", "lost", after("nothing")),
				nightly("shop", "x", after("y")), nightly("shop", "y", after("x")),
			},
			change: func(in *Input) { in.Limits.MaxConcurrent = 9 },
			want: []string{
				"shop/c 03:00:00 to 03:05:01 Succeeded",
				"shop/b 03:05:01 to 03:06:02 Succeeded",
				"shop/a 03:06:02 to 03:07:03 Succeeded",
				"shop/x tick 03:00:00 Skipped OrderCycle",
				"shop/y tick 03:00:00 Skipped OrderCycle",
				"shop/lost tick 03:00:00 Missed PredecessorNotFound",
			},
		},
		{
			name: "what waits for a slot does not fit into the window any more",
			restarts: []*tidekeeperv1.ScheduledRestart{
				nightly("shop", "a", window("0 3 * * *", 8*time.Minute), took(5*time.Minute)), nightly("shop", "b", window("0 3 * * *", 8*time.Minute), took(5*time.Minute)),
			},
			change: func(in *Input) { in.Limits.MaxConcurrent = 1 },
			want: []string{
				"shop/a 03:00:00 to 03:05:01 Succeeded",
				"shop/b tick 03:00:00 Missed WindowClosed",
			},
		},
		{
			name:     "pods become too old, again and again",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", young(25*time.Minute))},
			targets:  aged("02:40:00", "web"),
			want:     []string{"shop/web 03:05:00 to 03:06:01 Succeeded", "shop/web 03:30:00 to 03:31:01 Succeeded", "shop/web 03:55:00 to 03:56:01 Succeeded"},
		},
		{
			name: "pods that may not be listed are as old as the manager said",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", young(50*time.Minute), func(r *tidekeeperv1.ScheduledRestart) {
				r.Status.NextAgeTime = metaAt("03:05:00")
			})},
			want: []string{"shop/web 03:05:00 to 03:06:01 Succeeded", "shop/web 03:55:00 to 03:56:01 Succeeded"},
		},
		{
			name:     "a tick of the schedule serves the age of the pods",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds = 2400 }))},
			targets:  aged("02:25:00", "web"),
			want:     []string{"shop/web 03:00:00 to 03:01:01 Succeeded", "shop/web 03:40:00 to 03:41:01 Succeeded"},
		},
		{
			name:     "pods that would be too old before the next window opens",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", window("0 3 * * *", 30*time.Minute), young(24*time.Hour))},
			targets:  aged("01:00:00", "web"),
			want:     []string{"shop/web 03:00:00 to 03:01:01 Succeeded"},
		},
		{
			name:     "pods that are too old wait as long as it takes",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", young(25*time.Minute))},
			targets: map[TargetKey]Target{keyOf("web"): {
				State: &workload.State{Kind: "Deployment", Name: "web", UID: "t", Pods: 3, Paused: true, Rollout: workload.Progress{Available: true}}, Oldest: at("01:00:00"),
			}},
			want: []string{"shop/web tick 01:25:00 waits TargetPaused"},
		},
		{
			name:     "due and waiting at the end",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web")},
			targets:  targets(func(s *workload.State) { s.Paused = true }, "web"),
			change:   func(in *Input) { in.Until = at("03:10:00") },
			want:     []string{"shop/web tick 03:00:00 waits TargetPaused"},
		},
		{
			name:     "ticks that are recorded together",
			restarts: []*tidekeeperv1.ScheduledRestart{nightly("shop", "web", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule = "* 3 * * *" }))},
			targets:  targets(func(s *workload.State) { s.Paused = true }, "web"),
			change:   func(in *Input) { in.Until = at("03:11:00") },
			want: []string{
				"shop/web tick 03:00:00 Missed TargetPaused",
				"shop/web tick 03:01:00 Missed TargetPaused",
				"shop/web tick 03:02:00 Missed TargetPaused",
				"shop/web tick 03:03:00 Missed TargetPaused",
				"shop/web tick 03:05:00 Missed TargetPaused and 1 before",
				"shop/web tick 03:09:00 Missed TargetPaused and 3 before",
				"shop/web tick 03:10:00 waits TargetPaused",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := play(t, func(in *Input) {
				in.Restarts, in.Targets = tt.restarts, tt.targets
				if tt.change != nil {
					tt.change(in)
				}
			})
			if diff := cmp.Diff(tt.want, lines(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestForecastOfASpread(t *testing.T) {
	var want []string
	f := play(t, func(in *Input) {
		in.Limits.MaxConcurrent = 10
		for i := range 3 {
			name := fmt.Sprint(i)
			in.Restarts = append(in.Restarts, nightly("shop", name, spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.SpreadSeconds = 3000 })))
			want = append(want, at("03:00:00").Add(schedule.Spread("shop", name, 3000*time.Second)).Format(time.TimeOnly))
		}
	})
	got := make([]string, 3)
	for _, tick := range f.Started {
		got[tick.Name[0]-'0'] = tick.Start.Format(time.TimeOnly)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the starts (-want +got):\n%s", diff)
	}
}

// TestForecastWithoutASchedule checks that an invalid schedule is reported as a problem, and that
// other schedules are still simulated.
func TestForecastWithoutASchedule(t *testing.T) {
	f := play(t, func(in *Input) {
		in.Restarts = append(in.Restarts, nightly("shop", "api", spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.TimeZone = "Mars" })), nightly("shop", "web"))
	})
	if len(f.Problems) != 1 || f.Problems[0] != `shop/api: unknown time zone "Mars": write a name from the IANA database, such as Europe/Berlin or UTC` {
		t.Errorf("the problems are %q", f.Problems)
	}
	if f.Summary.Started != 1 {
		t.Errorf("%d restarts start, want 1", f.Summary.Started)
	}
}

// TestForecastIsBounded checks that ticks are only counted once the maximum number of ticks has
// been listed.
func TestForecastIsBounded(t *testing.T) {
	f := play(t, func(in *Input) {
		in.MostListed = 3
		for i := range 6 {
			in.Restarts = append(in.Restarts, nightly("shop", fmt.Sprint(i), spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.StartingDeadlineSeconds = 30 })))
		}
	})
	if s := f.Summary; len(f.Started)+len(f.NotStarted) != 3 || s.Unlisted != 3 || s.Started != 2 || s.Missed != 4 {
		t.Errorf("listed %d and %d: %+v", len(f.Started), len(f.NotStarted), s)
	}
}
