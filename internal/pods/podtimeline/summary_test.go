// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestSummarize(t *testing.T) {
	// notYet returns a pod that was initialized after 3 s and whose condition Ready has been False
	// since the given second.
	notYet := func(since int, s corev1.ContainerStatus) *podMaker {
		return aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 3).container(s).isNot(corev1.PodReady, since, "ContainersNotReady", "")
	}
	mayHave := &corev1.PodCondition{Type: SummaryCondition, Status: corev1.ConditionFalse}
	for _, tt := range []struct {
		name string
		pod  *podMaker
		want *corev1.PodCondition
	}{
		{name: "ready", pod: up(), want: &corev1.PodCondition{
			Type: SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: at(31), Message: "1,2,4,8,16",
		}},
		{name: "ready, created by a restart", pod: up().with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "then"}
		}), want: &corev1.PodCondition{
			Type: SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: at(31), Reason: "then", Message: "1,2,4,8,16",
		}},
		{name: "the end of one stage is not known, and so are two durations", pod: up().with(dropCondition(corev1.PodInitialized)), want: &corev1.PodCondition{
			Type: SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: at(31), Message: "1,-,-,8,16",
		}},
		{name: "just created", pod: aPod()},
		{name: "its containers do not start", pod: notYet(2, corev1.ContainerStatus{State: waiting("ContainerCreating", "")})},
		{name: "starting", pod: notYet(2, corev1.ContainerStatus{State: running(7)})},
		{name: "no longer ready", pod: notYet(20, corev1.ContainerStatus{State: running(7)}), want: mayHave},
		{name: "not ready since the second in which it started", pod: notYet(7, corev1.ContainerStatus{State: running(7)}), want: mayHave},
		{name: "restarted, so its first start is not known", pod: notYet(2, corev1.ContainerStatus{State: running(9), RestartCount: 1}), want: mayHave},
		{name: "without the condition", pod: aPod().container(corev1.ContainerStatus{State: running(7)}), want: mayHave},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Summarize(&tt.pod.pod)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("summary (-want +got):\n%s", diff)
			}
			if got == nil {
				return
			}
			summarized := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{*got}}}
			if diff := cmp.Diff(got, Summarize(summarized)); diff != "" {
				t.Errorf("summarized twice (-once +twice):\n%s", diff)
			}
		})
	}
}

// TestSummaryKeepsTheDurations checks that a summary contains all known durations of the timeline.
func TestSummaryKeepsTheDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timeline := New(drawPod(t))
		durations := StageDurations(&corev1.PodCondition{Message: encodeStages(timeline)})
		known := 0
		for i, s := range timeline.Stages {
			got, ok := durations[s.Name]
			if want := !s.Estimated && (i == 0 || !timeline.Stages[i-1].Estimated); ok != want {
				t.Fatalf("%s is known: %t, want %t", s.Name, ok, want)
			}
			if ok {
				known++
				if got != s.Duration {
					t.Fatalf("%s: got %s, want %s", s.Name, got, s.Duration)
				}
			}
		}
		if known != len(durations) {
			t.Fatalf("%d durations of %d stages", len(durations), known)
		}
	})
	if diff := cmp.Diff(map[StageName]time.Duration{Initialized: 2 * time.Second}, StageDurations(&corev1.PodCondition{Message: "x,2,-1,,1e3,7,8"})); diff != "" {
		t.Errorf("of an invalid summary (-want +got):\n%s", diff)
	}
}

// TestTimeToReady checks that TimeToReady returns the total even if the duration of a stage is
// unknown.
func TestTimeToReady(t *testing.T) {
	summarized := func(pod *corev1.Pod) *corev1.Pod {
		s := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: pod.CreationTimestamp}}
		if c := Summarize(pod); c != nil {
			s.Status.Conditions = []corev1.PodCondition{*c}
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		timeline := New(pod)
		want := timeline.Ready() && !timeline.Stages[len(timeline.Stages)-1].Estimated && !pod.CreationTimestamp.IsZero()
		switch got, ok := TimeToReady(summarized(pod)); {
		case ok != want:
			t.Fatalf("how long it took is known: %t, want %t\n%s", ok, want, describe(timeline))
		case ok && got != timeline.Total():
			t.Fatalf("it took %s, want %s\n%s", got, timeline.Total(), describe(timeline))
		}
	})
	if got, ok := TimeToReady(summarized(&up().with(dropCondition(corev1.PodInitialized)).pod)); !ok || got != 31*time.Second {
		t.Errorf("without one stage it took %s (%t), want 31s", got, ok)
	}
	if got := RestartedAt(summarized(&up().isNot(corev1.PodReady, 40, "", "").pod)); got != "" {
		t.Errorf("a pod that is no longer ready was created by %q", got)
	}
}
