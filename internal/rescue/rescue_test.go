// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func deployment(replicas int32, change func(*appsv1.DeploymentSpec)) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{ReadyReplicas: replicas}}
	change(&d.Spec)
	return d
}

func rolling(surge, unavailable int) func(*appsv1.DeploymentSpec) {
	return func(s *appsv1.DeploymentSpec) {
		s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt(surge)), MaxUnavailable: new(intstr.FromInt(unavailable))}
	}
}

// TestWhyEvicted checks which pods are evicted instead of being moved by a restart, and why.
func TestWhyEvicted(t *testing.T) {
	t.Parallel()
	defaults := func(*appsv1.DeploymentSpec) {}
	for name, tc := range map[string]struct {
		of      *appsv1.Deployment
		never   bool
		leaving int32
		want    string
	}{
		"a single replica":                             {of: deployment(1, defaults), leaving: 1},
		"all replicas leave together":                  {of: deployment(3, defaults), leaving: 3},
		"one of several replicas":                      {of: deployment(3, defaults), leaving: 1, want: "other pods of it stay ready"},
		"a budget of all, which a surge respects":      {of: deployment(3, rolling(1, 0)), never: true, leaving: 1},
		"a budget of all, which a restart breaks, too": {of: deployment(3, rolling(1, 1)), never: true, leaving: 1, want: "leave 2 of 3 pods ready"},
		"no surge":                           {of: deployment(1, rolling(0, 1)), leaving: 1, want: "would leave no pod ready"},
		"neither surge nor unavailable pods": {of: deployment(1, rolling(0, 0)), leaving: 1, want: "would leave no pod ready"},
		"a paused Deployment":                {of: deployment(1, func(s *appsv1.DeploymentSpec) { s.Paused = true }), leaving: 1, want: "it is paused"},
		"the strategy Recreate": {
			of: deployment(1, func(s *appsv1.DeploymentSpec) { s.Strategy.Type = appsv1.RecreateDeploymentStrategyType }), leaving: 1,
			want: "does not replace its pods one after the other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := WhyEvicted(tc.of, tc.never, tc.leaving)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestStateOf checks the states of a ScheduledRestart that was created to request a restart.
func TestStateOf(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	at := func(offset time.Duration) *metav1.Time { return new(metav1.NewTime(start.Add(offset))) }
	ended := func(outcome tidekeeperv1.Outcome) func(*tidekeeperv1.ScheduledRestart) {
		return func(r *tidekeeperv1.ScheduledRestart) {
			r.Status.LastRequestTime = at(0)
			r.Status.History = []tidekeeperv1.RestartRecord{{ScheduledTime: *at(0), Outcome: outcome, Reason: "Timeout", Message: "too slow"}}
		}
	}
	for name, tc := range map[string]struct {
		change    func(*tidekeeperv1.ScheduledRestart)
		start     time.Time
		want      Restart
		requested bool
	}{
		"requested": {change: func(*tidekeeperv1.ScheduledRestart) {}, start: start, want: Restart{State: Waiting}, requested: true},
		"held back": {
			change: func(r *tidekeeperv1.ScheduledRestart) {
				r.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: tidekeeperv1.ReasonFrozen, Message: "the books are closed"}}
			},
			start: start, want: Restart{State: Waiting, Message: "the books are closed"}, requested: true,
		},
		"in progress": {change: func(r *tidekeeperv1.ScheduledRestart) { r.Status.Active = &tidekeeperv1.ActiveRestart{} }, start: start, want: Restart{State: Running}, requested: true},
		"in progress, and held up": {
			change: func(r *tidekeeperv1.ScheduledRestart) {
				r.Status.Active = &tidekeeperv1.ActiveRestart{}
				r.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: tidekeeperv1.ReasonTargetPaused, Message: "it is paused"}}
			},
			start: start, want: Restart{State: Running, Message: "it is paused"}, requested: true,
		},
		"in progress for an earlier request": {change: func(r *tidekeeperv1.ScheduledRestart) { r.Status.Active = &tidekeeperv1.ActiveRestart{} }, start: start.Add(time.Minute), want: Restart{State: Running}, requested: true},
		"succeeded":                          {change: ended(tidekeeperv1.OutcomeSucceeded), start: start, want: Restart{State: Succeeded, Tick: start}, requested: true},
		"failed":                             {change: ended(tidekeeperv1.OutcomeFailed), start: start, want: Restart{State: Failed, Tick: start, Message: "Failed, Timeout: too slow"}, requested: true},
		"ended before this request":          {change: ended(tidekeeperv1.OutcomeSucceeded), start: start.Add(time.Minute)},
		"not observed for an hour, because a watch is late": {
			change: func(r *tidekeeperv1.ScheduledRestart) { r.Status.ObservedGeneration = 0 },
			start:  start, want: Restart{State: Waiting}, requested: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{
				CreationTimestamp: *at(-time.Hour), Annotations: map[string]string{tidekeeperv1.RestartNowAnnotation: workload.FormatTime(start)},
			}}
			r.Status.ObservedGeneration = 1
			tc.change(r)
			if got, requested := StateOf(r, tc.start, start.Add(time.Second)); got != tc.want || requested != tc.requested {
				t.Errorf("got %+v, %t, want %+v, %t", got, requested, tc.want, tc.requested)
			}
		})
	}
}

// TestSpares checks that only pods that existed at the time of a successful restart are replaced by it.
func TestSpares(t *testing.T) {
	t.Parallel()
	tick := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	for created, want := range map[time.Duration]bool{-time.Second: false, 0: true, time.Second: true} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(tick.Add(created))}}
		if got := (&Restart{State: Succeeded, Tick: tick}).Spares(pod); got != want {
			t.Errorf("created %s after the restart: %t", created, got)
		}
		if (&Restart{State: Failed, Tick: tick}).Spares(pod) {
			t.Error("a failed restart is said to have spared a pod")
		}
	}
}
