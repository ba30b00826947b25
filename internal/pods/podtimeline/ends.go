// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// stageEnd describes the end of a startup stage, as far as the pod's status shows it. reached is
// true if the stage has ended.
type stageEnd struct {
	reached bool
	// at is the time at which the stage ended. It is zero if the status does not contain the time.
	at time.Time
	// inexact is true if the stage may have ended earlier than the time in `at`.
	inexact bool
}

// whenTrue returns a function for a stage that ends when the given condition becomes True. The
// function returns the end of the stage.
func whenTrue(conditionType corev1.PodConditionType) func(*corev1.Pod) stageEnd {
	return func(pod *corev1.Pod) stageEnd {
		c := pods.Condition(pod, conditionType)
		if !isTrue(c) {
			return stageEnd{}
		}
		return stageEnd{reached: true, at: c.LastTransitionTime.Time}
	}
}

// ReadyAgain returns the time at which a pod became Ready again; zero if the pod may have become
// Ready for the first time. A pod without readiness gates becomes Ready as soon as its containers
// are ready. If its condition Ready changed later, the change had another cause, such as the
// recovery of its node. ReadyAgain needs the pod's spec, which caches may leave out.
func ReadyAgain(pod *corev1.Pod) time.Time {
	ready, containers := pods.Condition(pod, corev1.PodReady), pods.Condition(pod, corev1.ContainersReady)
	if len(pod.Spec.ReadinessGates) > 0 || !isTrue(ready) || !isTrue(containers) || containers.LastTransitionTime.IsZero() {
		return time.Time{}
	}
	if at := ready.LastTransitionTime.Time; at.Sub(containers.LastTransitionTime.Time) > Resolution {
		return at
	}
	return time.Time{}
}

func isTrue(c *corev1.PodCondition) bool { return c != nil && c.Status == corev1.ConditionTrue }

// endOfScheduling returns the time at which a pod was bound to its node. A pod that was created for
// a certain node, such as a static pod, may lack the condition PodScheduled; endOfScheduling then
// returns the time at which the kubelet accepted the pod.
func endOfScheduling(pod *corev1.Pod) stageEnd {
	if e := whenTrue(corev1.PodScheduled)(pod); e.reached && !e.at.IsZero() {
		return e
	}
	e := stageEnd{reached: pod.Spec.NodeName != "" || pods.IsConditionTrue(pod, corev1.PodScheduled), inexact: true}
	if pod.Status.StartTime != nil {
		e.reached, e.at = true, pod.Status.StartTime.Time
	}
	return e
}

// endOfContainerStarts returns the time at which the last container was started for the first time.
// A container's status contains only its last two starts, so the time is inexact if a container was
// started more than twice.
func endOfContainerStarts(pod *corev1.Pod) stageEnd {
	e := stageEnd{reached: len(pod.Spec.Containers) > 0}
	for _, c := range pod.Spec.Containers {
		s := pods.ContainerStatus(pod.Status.ContainerStatuses, c.Name)
		if s == nil {
			return stageEnd{}
		}
		first, ok := firstStart(s)
		if !ok {
			return stageEnd{}
		}
		switch {
		case first.IsZero():
			e.inexact = true
		case first.After(e.at):
			e.at = first
		}
		e.inexact = e.inexact || s.RestartCount > 1
	}
	return e
}

// firstStart returns the time of the first start of a container that its status contains; zero if
// the status lacks the time. It returns false if the container was never started.
func firstStart(s *corev1.ContainerStatus) (time.Time, bool) {
	var first time.Time
	started := false
	consider := func(at metav1.Time) {
		started = true
		if !at.IsZero() && (first.IsZero() || at.Time.Before(first)) {
			first = at.Time
		}
	}
	for _, state := range []corev1.ContainerState{s.LastTerminationState, s.State} {
		if state.Running != nil {
			consider(state.Running.StartedAt)
		}
		// A container that could not be started is terminated without a start time.
		if state.Terminated != nil && !state.Terminated.StartedAt.IsZero() {
			consider(state.Terminated.StartedAt)
		}
	}
	return first, started
}
