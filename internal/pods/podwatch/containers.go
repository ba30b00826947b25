// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// containers adds the transitions of all containers in a list of statuses.
func (d *differ) containers(was, is []corev1.ContainerStatus) {
	for i := range is {
		if first := pods.ContainerStatus(is, is[i].Name); first == &is[i] {
			d.container(pods.ContainerStatus(was, is[i].Name), &is[i])
		}
	}
	for i := range was {
		if pods.ContainerStatus(was, was[i].Name) == &was[i] && pods.ContainerStatus(is, was[i].Name) == nil {
			d.container(&was[i], &corev1.ContainerStatus{Name: was[i].Name})
		}
	}
}

// container adds the transitions of a container: the starts and terminations that only the new
// status contains, or the reason for which the container waits. The transitions of the last
// terminated run are added before those of the current run.
func (d *differ) container(was, is *corev1.ContainerStatus) {
	if was == nil {
		was = &corev1.ContainerStatus{}
	}
	from := stateOf(was)
	add := func(t Transition) {
		t.Kind, t.Name, t.From, t.Restarts = Container, is.Name, from, is.RestartCount
		// If From and To are equal, the container has been in another state in between. The
		// exception is a waiting container: its reason can change without a run in between, for
		// example from ErrImagePull to ImagePullBackOff. It counts as having run in between only if
		// its restart count has increased.
		t.Repeated = t.From == t.To && (t.To != Waiting || is.RestartCount > was.RestartCount)
		from = t.To
		d.add(t)
	}
	if last := is.LastTerminationState.Terminated; last != nil && !endKnown(was, last) {
		if start := last.StartedAt.Time; !start.IsZero() && !startKnown(was, start) {
			add(Transition{To: Running, Time: start})
		}
		add(end(last))
	}
	to := stateOf(is)
	switch s := is.State; to {
	case Terminated:
		if endKnown(was, s.Terminated) && from == to {
			return
		}
		if start := s.Terminated.StartedAt.Time; !start.IsZero() && !startKnown(was, start) {
			add(Transition{To: Running, Time: start})
		}
		add(end(s.Terminated))
	case Running:
		if from != to || !startKnown(was, s.Running.StartedAt.Time) {
			add(Transition{To: Running, Time: s.Running.StartedAt.Time})
		}
	case Waiting:
		if from != to || was.State.Waiting.Reason != s.Waiting.Reason || is.RestartCount > was.RestartCount {
			add(Transition{To: Waiting, Reason: s.Waiting.Reason, Message: s.Waiting.Message})
		}
	default:
		if from != to {
			add(Transition{})
		}
	}
}

func stateOf(s *corev1.ContainerStatus) string {
	switch {
	case s.State.Terminated != nil:
		return Terminated
	case s.State.Running != nil:
		return Running
	case s.State.Waiting != nil:
		return Waiting
	default:
		return ""
	}
}

// end returns the transition for a container's termination, with its exit code and termination
// message.
func end(t *corev1.ContainerStateTerminated) Transition {
	message := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Message != "" {
		message += ": " + t.Message
	}
	return Transition{To: Terminated, Time: t.FinishedAt.Time, Reason: t.Reason, Message: message}
}

// startKnown reports whether a container's status already contains the given start.
func startKnown(s *corev1.ContainerStatus, at time.Time) bool {
	for _, state := range []corev1.ContainerState{s.LastTerminationState, s.State} {
		if state.Running != nil && sameTime(state.Running.StartedAt.Time, at) || state.Terminated != nil && sameTime(state.Terminated.StartedAt.Time, at) {
			return true
		}
	}
	return false
}

// endKnown reports whether a container's status already contains the given termination.
func endKnown(s *corev1.ContainerStatus, t *corev1.ContainerStateTerminated) bool {
	for _, known := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
		if known != nil && known.ExitCode == t.ExitCode && sameTime(known.StartedAt.Time, t.StartedAt.Time) && sameTime(known.FinishedAt.Time, t.FinishedAt.Time) {
			return true
		}
	}
	return false
}

func sameTime(a, b time.Time) bool {
	return a.Truncate(podtimeline.Resolution).Equal(b.Truncate(podtimeline.Resolution))
}

func trimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var trimmed []corev1.ContainerStatus
	for _, s := range statuses {
		trimmed = append(trimmed, corev1.ContainerStatus{
			Name: s.Name, State: s.State, LastTerminationState: s.LastTerminationState, RestartCount: s.RestartCount,
		})
	}
	return trimmed
}
