// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// check returns an error unless the timeline has the properties that all timelines have: the stages
// are in order and without gaps, no duration is negative, the durations add up to the total and the
// shares to 1, and only the last stage may be unfinished.
func check(t Timeline) error {
	var errs []error
	if len(t.Stages) > len(StageNames()) {
		return fmt.Errorf("%d stages", len(t.Stages))
	}
	at := t.Created
	shares := 0.0
	for i, s := range t.Stages {
		if s.Name != StageNames()[i] {
			errs = append(errs, fmt.Errorf("stage %d is %s", i, s.Name))
		}
		if !s.Start.Equal(at) {
			errs = append(errs, fmt.Errorf("%s starts at %s, and the stage before it ends at %s", s.Name, s.Start, at))
		}
		if s.Duration < 0 || s.Duration%Resolution != 0 {
			errs = append(errs, fmt.Errorf("%s takes %s", s.Name, s.Duration))
		}
		if s.Share < 0 || s.Share > 1 {
			errs = append(errs, fmt.Errorf("%s has a share of %f", s.Name, s.Share))
		}
		if !s.Done && i < len(t.Stages)-1 {
			errs = append(errs, fmt.Errorf("%s is not done, and %s follows", s.Name, t.Stages[i+1].Name))
		}
		for _, w := range s.Waits {
			if w.Kind == "" || w.Duration < 0 || w.Restarts < 0 {
				errs = append(errs, fmt.Errorf("%s waits for %+v", s.Name, w))
			}
		}
		at = s.End()
		shares += s.Share
	}
	if !at.Equal(t.Created.Add(t.Total())) {
		errs = append(errs, fmt.Errorf("the stages end at %s, and the total at %s", at, t.Created.Add(t.Total())))
	}
	if t.Total() > 0 && math.Abs(shares-1) > 1e-9 {
		errs = append(errs, fmt.Errorf("the shares add up to %f", shares))
	}
	if t.Restarts < 0 {
		errs = append(errs, fmt.Errorf("%d restarts", t.Restarts))
	}
	open := len(t.Stages) > 0 && !t.Stages[len(t.Stages)-1].Done
	if open == (t.Ready() || t.Ended) {
		errs = append(errs, fmt.Errorf("ready %t, ended %t, and the last stage still open %t", t.Ready(), t.Ended, open))
	}
	return errors.Join(errs...)
}

// drawTime draws times close to each other, and sometimes an implausible time.
func drawTime(t *rapid.T, label string) metav1.Time {
	if rapid.IntRange(0, 9).Draw(t, label+" odd") == 0 {
		return rapid.SampledFrom([]metav1.Time{{}, metav1.Unix(0, 0), metav1.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}).Draw(t, label)
	}
	return metav1.NewTime(epoch.Add(time.Duration(rapid.IntRange(-2, 40).Draw(t, label)) * 500 * time.Millisecond))
}

func drawState(t *rapid.T) corev1.ContainerState {
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 0:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: drawTime(t, "started")}}
	case 1:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: rapid.SampledFrom([]string{"", "ErrImagePull", "CrashLoopBackOff", "PodInitializing"}).Draw(t, "reason")}}
	case 2:
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: drawTime(t, "started"), FinishedAt: drawTime(t, "finished"), ExitCode: rapid.Int32Range(0, 1).Draw(t, "code"),
		}}
	default:
		return corev1.ContainerState{}
	}
}

func drawContainers(t *rapid.T) ([]corev1.Container, []corev1.ContainerStatus) {
	var containers []corev1.Container
	var statuses []corev1.ContainerStatus
	for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
		c := corev1.Container{Name: fmt.Sprint("c", i)}
		if rapid.Bool().Draw(t, "sidecar") {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		containers = append(containers, c)
		if rapid.IntRange(0, 4).Draw(t, "has status") > 0 {
			statuses = append(statuses, corev1.ContainerStatus{
				Name: c.Name, State: drawState(t), LastTerminationState: drawState(t), Ready: rapid.Bool().Draw(t, "ready"),
				RestartCount: rapid.Int32Range(-1, 3).Draw(t, "restarts"), Started: rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "has started"),
			})
		}
	}
	return containers, statuses
}

func drawPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.CreationTimestamp = drawTime(t, "created")
	if rapid.IntRange(0, 9).Draw(t, "deleted") == 0 {
		deleted := drawTime(t, "deletion")
		pod.DeletionTimestamp = &deleted
	}
	pod.Spec.NodeName = rapid.SampledFrom([]string{"", "n1"}).Draw(t, "node")
	pod.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}).Draw(t, "phase")
	if rapid.Bool().Draw(t, "taken up") {
		start := drawTime(t, "start")
		pod.Status.StartTime = &start
	}
	pod.Spec.Containers, pod.Status.ContainerStatuses = drawContainers(t)
	pod.Spec.InitContainers, pod.Status.InitContainerStatuses = drawContainers(t)
	if rapid.Bool().Draw(t, "gated") {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
	}
	for range rapid.IntRange(0, 8).Draw(t, "conditions") {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: rapid.SampledFrom([]corev1.PodConditionType{
				corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, "gate",
			}).Draw(t, "type"),
			Status:             rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown, ""}).Draw(t, "status"),
			LastTransitionTime: drawTime(t, "since"),
			Reason:             rapid.SampledFrom([]string{"", "R"}).Draw(t, "why"),
		})
	}
	return pod
}

func TestEveryPodHasATimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		timeline := New(pod)
		if err := check(timeline); err != nil {
			t.Fatalf("%v\n%s", err, describe(timeline))
		}
		if err := check(timeline.At(drawTime(t, "now").Time)); err != nil {
			t.Fatalf("some time later: %v", err)
		}
		if timeline.Ready() != isTrue(pods.Condition(pod, corev1.PodReady)) {
			t.Fatalf("ready %t, and its condition is %v", timeline.Ready(), pods.Condition(pod, corev1.PodReady))
		}

		// The timeline must not depend on the order of the conditions or on a repeated condition.
		other := pod.DeepCopy()
		if n := len(pod.Status.Conditions); n > 0 {
			other.Status.Conditions = append(rapid.Permutation(pod.Status.Conditions).Draw(t, "order"),
				pod.Status.Conditions[rapid.IntRange(0, n-1).Draw(t, "twice")])
		}
		if diff := cmp.Diff(timeline, New(other)); diff != "" {
			t.Fatalf("the order of the conditions matters (-one +another):\n%s", diff)
		}
	})
}

func FuzzTimeline(f *testing.F) {
	for _, pod := range []*podMaker{
		{}, aPod(), up(),
		up().is(corev1.PodReady, 2).init("i", corev1.ContainerStatus{State: terminated(1, 3, 0)}),
		aPod().isNot(corev1.PodScheduled, 0, "Unschedulable", "no"),
		aPod().is(corev1.PodScheduled, 1).container(corev1.ContainerStatus{State: waiting("ImagePullBackOff", "no"), RestartCount: 3, LastTerminationState: terminated(1, 2, 1)}),
	} {
		text, err := json.Marshal(&pod.pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, int64(60))
	}
	f.Fuzz(func(t *testing.T, text []byte, later int64) {
		pod := &corev1.Pod{}
		if json.Unmarshal(text, pod) != nil {
			t.Skip()
		}
		timeline := New(pod)
		if err := check(timeline); err != nil {
			t.Errorf("%v\n%s", err, describe(timeline))
		}
		if err := check(timeline.At(time.Unix(later, 0))); err != nil {
			t.Errorf("at %d: %v", later, err)
		}
		timeline.Slowest()
	})
}
