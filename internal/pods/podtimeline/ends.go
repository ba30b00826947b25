// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// stageEnd is the end of a stage, according to the pod's status.
type stageEnd struct {
	reached bool
	// at is zero if the status does not contain the time.
	at time.Time
	// inexact means that the stage ended at that time or earlier.
	inexact bool
}

// whenTrue returns a function that takes the end of a stage from a condition.
func whenTrue(conditionType corev1.PodConditionType) func(*corev1.Pod) stageEnd {
	return func(pod *corev1.Pod) stageEnd {
		c := pods.Condition(pod, conditionType)
		if !isTrue(c) {
			return stageEnd{}
		}
		return stageEnd{reached: true, at: c.LastTransitionTime.Time}
	}
}

// ReadyAgain returns the time at which a pod became Ready again: without readiness gates nothing
// keeps a pod whose containers are ready from being Ready, so a later time is that of another
// change, such as the return of its node. Zero for a pod that may have become Ready then first. The
// pod needs its spec, which caches may leave out.
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

// endOfScheduling returns the time at which the pod was bound to its node. A pod that was
// created for its node, such as a static pod, may lack the condition. Then it returns the time
// at which the kubelet accepted the pod.
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

// endOfContainerStarts returns the time at which the last of the containers was started for the
// first time. The status of a container has its last two starts only, so the time is inexact if
// a container was started more than twice.
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

// firstStart returns the first known start of a container; false if the container was never
// started. The time is zero if the status does not contain it.
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
		// A container that could not be started is terminated without a start.
		if state.Terminated != nil && !state.Terminated.StartedAt.IsZero() {
			consider(state.Terminated.StartedAt)
		}
	}
	return first, started
}
