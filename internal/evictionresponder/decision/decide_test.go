// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math/rand"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

// start is the start time of the responder.
var start = time.Date(2026, time.June, 9, 12, 0, 0, 0, time.UTC)

// input returns the facts about the only pod of the Deployment web, ten seconds after the responder was
// activated.
func input() Input {
	return Input{
		Now: start.Add(10 * time.Second), Restarts: true,
		Eviction: &lifecyclev1alpha1.Eviction{
			Spec: lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: "web-1", UID: "1"}}},
			Status: lifecyclev1alpha1.EvictionStatus{
				TargetResponders: []lifecyclev1alpha1.TargetResponder{{Name: tidekeeperv1.EvictionResponder, State: lifecyclev1alpha1.ResponderStateActive}},
				Responders:       []lifecyclev1alpha1.ResponderStatus{{Name: tidekeeperv1.EvictionResponder, StartTime: &metav1.Time{Time: start}}},
			},
		},
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "1", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		Deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
			Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1},
		},
	}
}

// entryOf returns the responder's entry in the status.
func entryOf(in *Input) *lifecyclev1alpha1.ResponderStatus { return &in.Eviction.Status.Responders[0] }

func rolling(in *Input) { in.Deployment.Status.UpdatedReplicas = 0 }

func restarted(state rescue.RestartState, message string) func(*Input) {
	return func(in *Input) { in.Restart = &rescue.Restart{State: state, Tick: start, Message: message} }
}

// budgeted adds a budget for three replicas, of which `desired` must be healthy.
func budgeted(desired int32) func(*Input) {
	return func(in *Input) {
		in.Deployment.Spec.Replicas, in.Deployment.Status.ReadyReplicas = new(int32(3)), 3
		in.Deployment.Status.Replicas, in.Deployment.Status.UpdatedReplicas = 3, 3
		in.Budgets = []policyv1.PodDisruptionBudget{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3, DesiredHealthy: desired},
		}}
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*Input)
		restart bool
		outcome Outcome
		message string // of the written status; "" if nothing is written
	}{
		"the only replica":                     {func(*Input) {}, true, "", "a restart of Deployment web moves the pod"},
		"a budget that never allows it":        {budgeted(3), true, "", "a restart of Deployment web moves the pod"},
		"a budget that allows it":              {budgeted(2), false, Declined, "other pods of it stay ready"},
		"all replicas have to leave":           {func(in *Input) { budgeted(2)(in); in.Leaving = 2 }, true, "", "moves the pod"},
		"paused":                               {func(in *Input) { in.Deployment.Spec.Paused = true }, false, Declined, "it is paused"},
		"Recreate":                             {func(in *Input) { in.Deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }, false, Declined, "one after the other"},
		"no Deployment":                        {func(in *Input) { in.Deployment = nil }, false, Declined, "belongs to no Deployment"},
		"not ready":                            {func(in *Input) { in.Pod.Status.Conditions = nil }, false, Declined, "not ready"},
		"restarts are off":                     {func(in *Input) { in.Restarts = false }, false, Declined, "scheduled-restart"},
		"gone":                                 {func(in *Input) { in.Pod = nil }, false, Gone, "the pod is gone"},
		"another pod of the same name":         {func(in *Input) { in.Pod.UID = "2" }, false, Gone, "the pod is gone"},
		"ended":                                {func(in *Input) { in.Pod.Status.Phase = corev1.PodFailed }, false, Gone, "the pod is gone"},
		"being deleted":                        {func(in *Input) { in.Pod.DeletionTimestamp = &metav1.Time{Time: start} }, false, "", "being deleted"},
		"rolling out":                          {rolling, false, "", "Deployment web is rolling out"},
		"rolling out for long":                 {func(in *Input) { rolling(in); in.Now = start.Add(rollingFor) }, false, Failed, "rolling out for too long"},
		"a restart that waits":                 {restarted(rescue.Waiting, "frozen"), false, "", "it waits: frozen"},
		"a restart of a pod that is not ready": {func(in *Input) { restarted(rescue.Waiting, "")(in); in.Pod.Status.Conditions = nil }, false, "", "moves the pod"},
		"a restart that failed":                {restarted(rescue.Failed, "Missed"), false, Failed, "could not be restarted: Missed"},
		"a restart that changed nothing":       {restarted(rescue.Succeeded, ""), false, Failed, "still has the pod"},
		"skipped for another rollout":          {func(in *Input) { restarted(rescue.Failed, "Skipped")(in); rolling(in) }, false, "", "rolling out"},
		"restarted before the pod was created": {func(in *Input) {
			restarted(rescue.Succeeded, "")(in)
			in.Pod.CreationTimestamp = metav1.NewTime(start.Add(time.Second))
		}, true, "", "moves the pod"},
		"inactive": {func(in *Input) {
			in.Eviction.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateInactive
		}, false, "", ""},
		"canceled": {func(in *Input) {
			in.Eviction.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateCanceled
		}, false, "", ""},
		"another name": {func(in *Input) { in.Eviction.Status.TargetResponders[0].Name = "example.com/x" }, false, "", ""},
		"completed":    {func(in *Input) { entryOf(in).CompletionTime = &metav1.Time{Time: start} }, false, "", ""},
		"no pod":       {func(in *Input) { in.Eviction.Spec.Target.Pod = nil }, false, "", ""},
	} {
		in := input()
		tc.change(&in)
		before := in.Eviction.DeepCopy()
		step := Decide(in)
		message := ""
		if step.Status != nil {
			message = *step.Status.Message
		}
		if step.Restart != tc.restart || step.Outcome != tc.outcome || !strings.Contains(message, tc.message) || (message == "") != (tc.message == "") {
			t.Errorf("%s: restart %t, %s, %q", name, step.Restart, step.Outcome, message)
		}
		if ended := step.Status != nil && step.Status.CompletionTime != nil; ended != (tc.outcome != "") {
			t.Errorf("%s: completed %t with the outcome %q", name, ended, step.Outcome)
		}
		if step.Wake.IsZero() != (tc.message == "" || tc.outcome != "") {
			t.Errorf("%s: decided again at %s", name, step.Wake)
		}
		if entry := before.Status.Responders[0]; in.Eviction.Status.Responders[0].Message != entry.Message {
			t.Errorf("%s: the decision changes its input", name)
		}
	}
}

// TestMessagesDoNotHurry checks that a changed message is written at once, and no heartbeat with it if
// the last one is recent.
func TestMessagesDoNotHurry(t *testing.T) {
	in := input()
	restarted(rescue.Waiting, "")(&in)
	*entryOf(&in) = *Decide(in).Status
	first := entryOf(&in).HeartbeatTime
	if step := Decide(in); step.Status != nil {
		t.Errorf("written twice: %+v", step.Status)
	}
	restarted(rescue.Waiting, "frozen")(&in)
	in.Now = in.Now.Add(shortestHeartbeat - time.Second)
	step := Decide(in)
	if step.Status == nil || !step.Status.HeartbeatTime.Equal(first) {
		t.Errorf("%+v", step.Status)
	}
	in.Now = in.Now.Add(time.Second)
	if step := Decide(in); !step.Status.HeartbeatTime.Equal(&metav1.Time{Time: in.Now}) {
		t.Errorf("%+v", step.Status)
	}
}

// TestClockBehind checks that no time is before the start time if the clock of this machine is behind.
func TestClockBehind(t *testing.T) {
	in := input()
	in.Now = start.Add(-15 * time.Second)
	if at := Decide(in).Status.HeartbeatTime; at.Time.Before(start) {
		t.Errorf("the heartbeat is of %s", at)
	}
	in.Pod = nil
	if at := Decide(in).Status.CompletionTime; at.Time.Before(start) {
		t.Errorf("completed at %s", at)
	}
}

// TestAnyHistory plays random histories of an Eviction, with crashes after each write. Each response
// ends, a heartbeat is never more than two minutes late and never two within 20 seconds, nothing follows
// the completion, and a restart is requested at most once.
func TestAnyHistory(t *testing.T) {
	for seed := range int64(500) {
		random := rand.New(rand.NewSource(seed))
		in := input()
		requests, ended := 0, time.Time{}
		for steps := 0; ended.IsZero(); steps++ {
			if steps > 2000 {
				t.Fatalf("seed %d: the response does not end", seed)
			}
			step := Decide(in)
			if step.Wake.IsZero() && step.Outcome == "" {
				t.Fatalf("seed %d: nothing wakes the responder", seed)
			}
			if step.Status != nil {
				check(t, seed, entryOf(&in), step.Status)
				*entryOf(&in) = *step.Status
			}
			if step.Outcome != "" {
				ended = in.Now
				break
			}
			crashed := random.Intn(4) == 0
			if step.Restart && !crashed {
				requests++
				in.Restart = &rescue.Restart{State: rescue.Waiting, Tick: start}
			}
			next := step.Wake
			if crashed || random.Intn(2) == 0 { // An event comes before the wake-up.
				next = in.Now.Add(time.Duration(random.Int63n(int64(max(time.Second, step.Wake.Sub(in.Now))))))
			}
			in.Now = next
			happen(random, &in)
		}
		if requests > 1 {
			t.Fatalf("seed %d: %d restarts were requested", seed, requests)
		}
		in.Now = ended.Add(time.Hour)
		if step := Decide(in); step.Status != nil || step.Restart {
			t.Fatalf("seed %d: %+v after the completion", seed, step)
		}
	}
}

// happen changes the facts as a rollout, a Freeze or the end of a restart would.
func happen(random *rand.Rand, in *Input) {
	switch n := random.Intn(20); {
	case n == 0:
		in.Deployment.Status.UpdatedReplicas = 1 - in.Deployment.Status.UpdatedReplicas
	case in.Restart == nil || in.Restart.State != rescue.Waiting:
	case n == 1:
		in.Restart.State, in.Restart.Message = rescue.Failed, "Missed"
	case n == 2:
		in.Restart.State, in.Pod = rescue.Succeeded, nil
	case n < 6:
		in.Restart.Message = []string{"", "frozen", "budget"}[random.Intn(3)]
	}
}

// check checks a write of the responder's entry.
func check(t *testing.T, seed int64, before, after *lifecyclev1alpha1.ResponderStatus) {
	t.Helper()
	switch {
	case before.CompletionTime != nil:
		t.Fatalf("seed %d: a completed entry is written", seed)
	case after.CompletionTime == nil && after.HeartbeatTime == nil:
		t.Fatalf("seed %d: an entry in progress has no heartbeat", seed)
	case before.HeartbeatTime == nil || after.HeartbeatTime.Equal(before.HeartbeatTime):
		return
	}
	if since := after.HeartbeatTime.Sub(before.HeartbeatTime.Time); since < shortestHeartbeat || since > 2*heartbeat {
		t.Fatalf("seed %d: a heartbeat after %s", seed, since)
	}
}

// TestInProgress checks which Evictions have ended.
func TestInProgress(t *testing.T) {
	for _, condition := range []lifecyclev1alpha1.EvictionConditionType{lifecyclev1alpha1.EvictionConditionFailed, lifecyclev1alpha1.EvictionConditionTargetEvicted} {
		e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{UID: types.UID("1")}}
		for status, want := range map[metav1.ConditionStatus]bool{metav1.ConditionFalse: true, metav1.ConditionTrue: false} {
			e.Status.Conditions = []metav1.Condition{{Type: string(condition), Status: status}}
			if got := InProgress(e); got != want {
				t.Errorf("%s %s: in progress %t", condition, status, got)
			}
		}
	}
}
