// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// at returns the time that is the given number of seconds after the epoch, when all pods are
// created.
func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

// change modifies a pod.
type change func(*corev1.Pod)

// pod returns a new pod with the given changes.
func pod(changes ...change) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.CreationTimestamp = "shop", "web", "1", at(0)
	p.Status.Phase = corev1.PodPending
	for _, c := range changes {
		c(p)
	}
	return p
}

func phase(phase corev1.PodPhase) change { return func(p *corev1.Pod) { p.Status.Phase = phase } }

// is returns a change that sets a condition, or removes it if the status is "".
func is(kind corev1.PodConditionType, status corev1.ConditionStatus, seconds int, reason string) change {
	return func(p *corev1.Pod) {
		var kept []corev1.PodCondition
		for _, c := range p.Status.Conditions {
			if c.Type != kind {
				kept = append(kept, c)
			}
		}
		if status != "" {
			kept = append(kept, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at(seconds), Reason: reason})
		}
		p.Status.Conditions = kept
	}
}

func yes(kind corev1.PodConditionType, seconds int) change { return is(kind, "True", seconds, "") }

func no(kind corev1.PodConditionType, seconds int, reason string) change {
	return is(kind, "False", seconds, reason)
}

// app returns a change that sets the state of the container "app". If two states are given, the
// second is its last termination state.
func app(restarts int32, states ...corev1.ContainerState) change {
	return func(p *corev1.Pod) {
		s := corev1.ContainerStatus{Name: "app", RestartCount: restarts, State: states[0]}
		if len(states) > 1 {
			s.LastTerminationState = states[1]
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{s}
	}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func running(seconds int) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(seconds)}}
}

func terminated(started, finished int, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(started), FinishedAt: at(finished), ExitCode: code, Reason: "Error"}}
}

func deleting(seconds int) change {
	return func(p *corev1.Pod) {
		grace, end := int64(30), at(seconds+30)
		p.DeletionGracePeriodSeconds, p.DeletionTimestamp = &grace, &end
	}
}

// describe formats a transition as a line with the seconds after the epoch, the kind, the name and
// the states.
func describe(t Transition) string {
	when := "?"
	if !t.Time.IsZero() {
		when = fmt.Sprint(int(t.Time.Sub(epoch).Seconds()))
	}
	text := when + " " + string(t.Kind)
	if t.Name != "" {
		text += " " + t.Name
	}
	if t.Kind == Phase || t.Kind == Condition || t.Kind == Container {
		text += fmt.Sprintf(" %s>%s", t.From, t.To)
	}
	if t.Repeated {
		text += " again"
	}
	if t.Restarts > 0 {
		text += fmt.Sprintf(" restarts=%d", t.Restarts)
	}
	if t.Reason != "" {
		text += " " + t.Reason
	}
	return text
}

func describeAll(transitions []Transition) []string {
	lines := []string{}
	for _, t := range transitions {
		lines = append(lines, describe(t))
	}
	return lines
}

func TestDiff(t *testing.T) {
	up := []change{
		yes(corev1.PodScheduled, 1), yes(corev1.PodInitialized, 3), phase(corev1.PodRunning), app(0, running(4)),
		yes(corev1.ContainersReady, 8), yes(corev1.PodReady, 9),
	}
	upAnd := func(more ...change) *corev1.Pod { return pod(append(append([]change{}, up...), more...)...) }
	for _, tc := range []struct {
		name     string
		old, pod *corev1.Pod
		want     []string
	}{
		{"nothing", pod(), pod(), []string{}},
		{"a new pod", nil, pod(), []string{"0 Created", "? Phase >Pending"}},
		{"a new pod that has started already", nil, pod(up...), []string{
			"0 Created", "1 Condition PodScheduled >True", "3 Condition Initialized >True", "? Phase >Running",
			"4 Container app >running", "8 Condition ContainersReady >True", "9 Condition Ready >True",
		}},
		{"no node fits", pod(), pod(no(corev1.PodScheduled, 0, "Unschedulable")), []string{"0 Condition PodScheduled >False Unschedulable"}},
		{"the reason changes, at an unknown time", pod(no(corev1.PodScheduled, 0, "SchedulingGated")), pod(no(corev1.PodScheduled, 0, "Unschedulable")),
			[]string{"? Condition PodScheduled False>False Unschedulable"}},
		{"one condition", pod(no(corev1.PodReady, 1, "ContainersNotReady")), pod(yes(corev1.PodReady, 9)), []string{"9 Condition Ready False>True"}},
		{"a condition is removed", pod(yes("example.com/gate", 1)), pod(), []string{"? Condition example.com/gate True>"}},
		{"a readiness gate comes before Ready", pod(), pod(yes(corev1.PodReady, 9), yes("example.com/gate", 9)),
			[]string{"9 Condition example.com/gate >True", "9 Condition Ready >True"}},
		{"a condition that was false in between", pod(up...), upAnd(yes(corev1.PodReady, 50)), []string{"50 Condition Ready True>True again"}},
		{"a condition whose time goes back is the same", upAnd(yes(corev1.PodReady, 50)), pod(up...), []string{}},
		{"a message alone is not a transition", pod(yes(corev1.PodReady, 9)), pod(yes(corev1.PodReady, 9), func(p *corev1.Pod) { p.Status.Conditions[0].Message = "new" }), []string{}},
		{"the last change of a repeated condition counts", pod(), pod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodReady, Status: "True", LastTransitionTime: at(9)}, {Type: corev1.PodReady, Status: "False", LastTransitionTime: at(2)},
			}
		}), []string{"9 Condition Ready >True"}},
		{"an image that cannot be pulled", pod(app(0, waiting("ErrImagePull"))), pod(app(0, waiting("ImagePullBackOff"))),
			[]string{"? Container app waiting>waiting ImagePullBackOff"}},
		{"a crash, seen when the container waits for its restart", pod(up...), upAnd(app(0, waiting("CrashLoopBackOff"), terminated(4, 20, 1))),
			[]string{"20 Container app running>terminated Error", "? Container app terminated>waiting CrashLoopBackOff"}},
		{"a crash, seen when it runs again", pod(up...), upAnd(app(1, running(30), terminated(4, 20, 1))),
			[]string{"20 Container app running>terminated restarts=1 Error", "30 Container app terminated>running restarts=1"}},
		{"two crashes, the first without a trace", pod(up...), upAnd(app(2, running(60), terminated(30, 40, 1))), []string{
			"30 Container app running>running again restarts=2", "40 Container app running>terminated restarts=2 Error", "60 Container app terminated>running restarts=2",
		}},
		{"what was reported is not repeated", upAnd(app(0, waiting("CrashLoopBackOff"), terminated(4, 20, 1))), upAnd(app(1, running(30), terminated(4, 20, 1))),
			[]string{"30 Container app waiting>running restarts=1"}},
		{"an end that becomes the last end", upAnd(app(0, terminated(4, 20, 1))), upAnd(app(0, waiting("CrashLoopBackOff"), terminated(4, 20, 1))),
			[]string{"? Container app terminated>waiting CrashLoopBackOff"}},
		{"it waits again after a run without a trace", upAnd(app(1, waiting("CrashLoopBackOff"))), upAnd(app(2, waiting("CrashLoopBackOff"))),
			[]string{"? Container app waiting>waiting again restarts=2 CrashLoopBackOff"}},
		{"deleted", pod(up...), upAnd(deleting(20)), []string{"20 Deleting"}},
		{"deleted and ended, in the order of the times", pod(up...), upAnd(deleting(20), app(0, terminated(4, 22, 0)), no(corev1.PodReady, 22, "PodCompleted"), phase(corev1.PodSucceeded)),
			[]string{"20 Deleting", "22 Container app running>terminated Error", "22 Condition Ready True>False PodCompleted", "? Phase Running>Succeeded"}},
		{"a node that was lost before the container ended", pod(up...), upAnd(app(0, terminated(4, 30, 1)), no(corev1.PodReady, 20, "NodeLost")),
			[]string{"20 Condition Ready True>False NodeLost", "30 Container app running>terminated Error"}},
		{"evicted", pod(up...), upAnd(phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), []string{"? Phase Running>Failed Evicted"}},
		{"replaced by another pod of the same name", pod(up...), pod(func(p *corev1.Pod) { p.UID = "2" }), []string{"? Deleted", "0 Created", "? Phase >Pending"}},
		{"an init container comes before Initialized", pod(), pod(yes(corev1.PodInitialized, 3), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: terminated(1, 3, 0)}}
		}), []string{"1 Container setup >running", "3 Container setup running>terminated Error", "3 Condition Initialized >True"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describeAll(Diff(tc.old, tc.pod))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFound(t *testing.T) {
	for want, p := range map[string]*corev1.Pod{
		"Running  ready":              pod(phase(corev1.PodRunning), yes(corev1.PodReady, 1)),
		"Running ContainersNotReady ": pod(phase(corev1.PodRunning), no(corev1.PodReady, 1, "ContainersNotReady")),
		"Pending  ":                   pod(),
		"Succeeded  ":                 pod(phase(corev1.PodSucceeded), no(corev1.PodReady, 1, "PodCompleted")),
		"Running  is being deleted":   pod(phase(corev1.PodRunning), yes(corev1.PodReady, 1), deleting(5)),
	} {
		if got := found(p); got.To+" "+got.Reason+" "+got.Message != want {
			t.Errorf("found %+v, want %q", got, want)
		}
	}
}
