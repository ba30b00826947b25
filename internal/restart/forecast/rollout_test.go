// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// rolling returns the Deployment web in the namespace shop in a rollout whose last progress was at the
// given time. Its controller reports a rollout without progress after the given limit.
func rolling(lastProgress string, limit time.Duration, changes ...func(*workload.State)) map[TargetKey]Target {
	all := targets(func(s *workload.State) {
		s.Rollout = workload.Progress{Updating: true, Message: "1 of 3 pods are updated"}
		for _, change := range changes {
			change(s)
		}
	}, "web")
	all[keyOf("web")] = Target{State: all[keyOf("web")].State, LastProgress: at(lastProgress), ProgressLimit: limit}
	return all
}

// TestForecastOfHangingRollouts checks that a rollout without progress beyond its deadline never
// completes, that ticks are then missed with the manager's reason, and that other rollouts
// complete.
func TestForecastOfHangingRollouts(t *testing.T) {
	exceeded := func(s *workload.State) { s.Rollout.Exceeded = true }
	started := func(s *workload.State) { s.RestartedAt, s.LastTick = "2026-06-10T02:50:00Z", "2026-06-10T02:50:00Z" }
	last := func(s *workload.State) {
		s.Rollout = workload.Progress{Message: "2 of 3 pods are available"}
		started(s)
	}
	whatever := spec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })
	for _, tt := range []struct {
		name    string
		restart *tidekeeperv1.ScheduledRestart
		targets map[TargetKey]Target
		want    []string
		hangs   string
	}{
		{
			"its controller has given it up", nightly("shop", "web"), rolling("02:00:00", 10*time.Minute, exceeded),
			[]string{"shop/web tick 03:00:00 Missed TargetUnhealthy"}, "1 of 3 pods are updated",
		},
		{
			"its controller should have given it up", nightly("shop", "web"), rolling("02:48:59", 10*time.Minute),
			[]string{"shop/web tick 03:00:00 Missed TargetUnhealthy"}, "1 of 3 pods are updated",
		},
		{
			"it may still make progress", nightly("shop", "web"), rolling("02:49:00", 10*time.Minute),
			[]string{"shop/web 03:00:01 to 03:01:02 Succeeded"}, "",
		},
		{
			"no controller gives it up, and it takes longer than a restart may", nightly("shop", "web"), rolling("02:28:59", 0),
			[]string{"shop/web tick 03:00:00 Missed TargetRolling"}, "1 of 3 pods are updated",
		},
		{
			"no controller gives it up, and it may take longer", nightly("shop", "web"), rolling("02:29:00", 0),
			[]string{"shop/web 03:00:01 to 03:01:02 Succeeded"}, "",
		},
		{
			"restarted nevertheless, it hangs again", nightly("shop", "web", whatever), rolling("02:00:00", 10*time.Minute, exceeded),
			[]string{"shop/web 03:00:00 to 03:10:00 Failed ProgressDeadlineExceeded"}, "1 of 3 pods are updated",
		},
		{
			"a restart in progress", nightly("shop", "web", inProgress("02:50:00")), rolling("02:50:00", 5*time.Minute, started),
			[]string{"shop/web 02:50:00 to 02:59:00 Failed ProgressDeadlineExceeded", "shop/web tick 03:00:00 Missed TargetUnhealthy"}, "1 of 3 pods are updated",
		},
		{
			"a restart in progress whose last pods start", nightly("shop", "web", inProgress("02:50:00"), took(15*time.Minute)), targets(last, "web"),
			[]string{"shop/web 02:50:00 to 03:05:01 Succeeded", "shop/web 03:05:02 to 03:20:03 Succeeded"}, "",
		},
		{
			"the last pods of a rollout start", nightly("shop", "web"), rolling("02:55:00", 10*time.Minute, last),
			[]string{"shop/web 03:00:01 to 03:01:02 Succeeded"}, "",
		},
		{
			"it waits for a user", nightly("shop", "web"), rolling("02:55:00", 0, func(s *workload.State) { s.Rollout.Halted = "its update is paused" }),
			[]string{"shop/web tick 03:00:00 Missed TargetRolling"}, "its update is paused",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := play(t, func(in *Input) { in.Restarts, in.Targets = []*tidekeeperv1.ScheduledRestart{tt.restart}, tt.targets })
			if diff := cmp.Diff(tt.want, lines(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var hanging []Hanging
			if tt.hangs != "" {
				hanging = []Hanging{{Namespace: "shop", Target: "Deployment/web", Message: tt.hangs}}
			}
			if diff := cmp.Diff(hanging, f.Hanging); diff != "" {
				t.Errorf("what hangs (-want +got):\n%s", diff)
			}
			elsewhere := play(t, func(in *Input) {
				in.Restarts, in.Targets, in.Namespace = []*tidekeeperv1.ScheduledRestart{tt.restart}, tt.targets, "elsewhere"
			})
			if len(elsewhere.Hanging) > 0 {
				t.Errorf("a forecast of another namespace has %v", elsewhere.Hanging)
			}
		})
	}
}

// TestForecastWithoutAManager checks that ticks from the time without a manager get the outcomes
// that a manager would record if it started now.
func TestForecastWithoutAManager(t *testing.T) {
	due := func(since string, status func(*tidekeeperv1.ScheduledRestartStatus)) *tidekeeperv1.ScheduledRestart {
		return nightly("shop", "web", spec(func(s *tidekeeperv1.ScheduledRestartSpec) {
			s.Schedule, s.StartingDeadlineSeconds = "0 * * * *", 900
		}), func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.NextScheduleTime = metaAt(since)
			status(&r.Status)
		})
	}
	paused := targets(func(s *workload.State) { s.Paused = true }, "web")
	waited := func(s *tidekeeperv1.ScheduledRestartStatus) { s.Conditions = readyFor(tidekeeperv1.ReasonTargetPaused) }
	none := func(*tidekeeperv1.ScheduledRestartStatus) {}
	for _, tt := range []struct {
		name    string
		restart *tidekeeperv1.ScheduledRestart
		targets map[TargetKey]Target
		leads   time.Time
		want    []string
	}{
		{
			"no manager was running", due("02:00:00", none), nil, at("02:59:00"),
			[]string{"02:00:00 DeadlineExceeded 0 no manager was running before the deadline"},
		},
		{
			"a manager that leads for longer was too late", due("02:00:00", none), nil, at("01:00:00"),
			[]string{"02:00:00 DeadlineExceeded 0 a manager was running, but did not start the restart within 900 s of the time at which it was due"},
		},
		{
			"several ticks, and now a gate is closed", due("00:00:00", waited), paused, at("02:59:00"),
			[]string{
				"01:00:00 Superseded 1 a later tick was due as well",
				"02:00:00 TargetPaused 0 not started before the deadline: Deployment web is paused",
			},
		},
		{
			"several ticks, all seen by the manager", due("00:00:00", waited), paused, at("00:00:00"),
			[]string{"02:00:00 TargetPaused 2 not started before the deadline: Deployment web is paused"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := play(t, func(in *Input) {
				in.Restarts, in.Targets, in.LeadingSince, in.Until = []*tidekeeperv1.ScheduledRestart{tt.restart}, tt.targets, tt.leads, at("02:59:59")
			})
			var got []string
			for _, tick := range f.NotStarted {
				got = append(got, fmt.Sprintf("%s %s %d %s", tick.Tick.Format(time.TimeOnly), tick.Reason, tick.EarlierTicks, tick.Message))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// readyFor returns the condition Ready with the given reason.
func readyFor(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason}}
}
