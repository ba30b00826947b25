// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// WaitKind says what kind of thing a pod waits for.
type WaitKind string

// What a pod can wait for.
const (
	// ForScheduler: there is no node for the pod, or a gate keeps the scheduler
	// from looking for one. The reason and the message are the scheduler's.
	ForScheduler WaitKind = "Scheduler"
	// ForImage: the image of a container cannot be had.
	ForImage WaitKind = "Image"
	// ForInitContainer: an init container is not done, or how long it took.
	ForInitContainer WaitKind = "InitContainer"
	// ForContainer: a container does not start or is not ready.
	ForContainer WaitKind = "Container"
	// ForRestart: a container ended and was started again.
	ForRestart WaitKind = "Restart"
	// ForReadinessGate: a condition that the pod names as a readiness gate.
	ForReadinessGate WaitKind = "ReadinessGate"
)

// Wait is one thing that a pod waits for, or has waited for.
type Wait struct {
	Kind WaitKind
	// Name is that of the container or of the readiness gate.
	Name string
	// Reason and Message are what the cluster says about it, if it does.
	Reason, Message string
	// Length is how long it took, where that is told: for an init container
	// that is done.
	Length time.Duration
	// Restarts is how often the container was started again.
	Restarts int64
}

// Reasons of waits that are not taken from the pod.
const (
	// ReasonRunning: an init container runs.
	ReasonRunning = "Running"
	// ReasonCompleted: an init container is done.
	ReasonCompleted = "Completed"
	// ReasonStartupProbe: a container's startup probe has not succeeded yet.
	ReasonStartupProbe = "StartupProbe"
	// ReasonReadinessProbe: a container is up, but its readiness probe says
	// that it is not ready.
	ReasonReadinessProbe = "ReadinessProbe"
	// ReasonNotSet: nobody has set the condition that a readiness gate names.
	ReasonNotSet = "NotSet"
)

// imageReasons are the reasons of a kubelet for which a container has no image.
var imageReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "ErrImageNeverPull": true, "ImageInspectError": true,
	"InvalidImageName": true, "RegistryUnavailable": true, "SignatureValidationFailed": true,
}

func waitsForScheduler(pod *corev1.Pod, stage Stage) []Wait {
	c := Condition(pod, corev1.PodScheduled)
	if stage.Done || c == nil || c.Reason == "" && c.Message == "" {
		return nil
	}
	return []Wait{{Kind: ForScheduler, Reason: c.Reason, Message: c.Message}}
}

// waitsForInit names the init containers that are not done; when all are, how
// long each took. Sidecars run on, so that their ends say nothing.
func waitsForInit(pod *corev1.Pod, stage Stage) []Wait {
	var waits []Wait
	for _, c := range pod.Spec.InitContainers {
		s := statusOf(pod.Status.InitContainerStatuses, c.Name)
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		switch {
		case s == nil:
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 && !sidecar:
			w := Wait{Kind: ForInitContainer, Name: c.Name, Reason: ReasonCompleted, Restarts: max(0, int64(s.RestartCount))}
			started, finished := s.State.Terminated.StartedAt.Time, s.State.Terminated.FinishedAt.Time
			if !started.IsZero() && possible(started, finished) {
				w.Length = finished.Truncate(Grain).Sub(started.Truncate(Grain))
			}
			waits = append(waits, w)
		case stage.Done || sidecar && s.Started != nil && *s.Started:
		default:
			if w := waitFor(s, ForInitContainer); w.Reason != "PodInitializing" || w.Restarts > 0 {
				waits = append(waits, w)
			}
		}
	}
	return waits
}

// waitsForStart names the containers that were never started.
func waitsForStart(pod *corev1.Pod, stage Stage) []Wait {
	if stage.Done {
		return nil
	}
	var waits []Wait
	for _, c := range pod.Spec.Containers {
		if s := statusOf(pod.Status.ContainerStatuses, c.Name); s != nil {
			if _, started := firstStart(s); !started {
				waits = append(waits, waitFor(s, ForContainer))
			}
		}
	}
	return waits
}

// waitsForContainers names the containers that are not ready; when all are,
// those that had to be started again.
func waitsForContainers(pod *corev1.Pod, stage Stage) []Wait {
	var waits []Wait
	for _, c := range pod.Spec.Containers {
		s := statusOf(pod.Status.ContainerStatuses, c.Name)
		switch {
		case s == nil:
		case !stage.Done && !s.Ready:
			waits = append(waits, waitFor(s, ForContainer))
		case stage.Done && s.RestartCount > 0 && startedBy(s, stage.End()):
			w := Wait{Kind: ForRestart, Name: s.Name, Restarts: int64(s.RestartCount)}
			if last := s.LastTerminationState.Terminated; last != nil {
				w.Reason, w.Message = last.Reason, exit(last)
			}
			waits = append(waits, w)
		}
	}
	return waits
}

func startedBy(s *corev1.ContainerStatus, by time.Time) bool {
	return s.State.Running != nil && !s.State.Running.StartedAt.Truncate(Grain).After(by)
}

// waitsForGates names the readiness gates that are not open; when all are, the
// last to have opened, if that was after the containers were ready.
func waitsForGates(pod *corev1.Pod, stage Stage) []Wait {
	var waits []Wait
	var last time.Time
	for _, gate := range pod.Spec.ReadinessGates {
		c := Condition(pod, gate.ConditionType)
		w := Wait{Kind: ForReadinessGate, Name: string(gate.ConditionType), Reason: ReasonNotSet}
		if c != nil {
			w.Reason, w.Message = c.Reason, c.Message
		}
		switch {
		case !stage.Done && !isTrue(c):
			waits = append(waits, w)
		case stage.Done && isTrue(c) && c.LastTransitionTime.After(stage.Start) && c.LastTransitionTime.After(last):
			waits, last = []Wait{w}, c.LastTransitionTime.Time
		}
	}
	return waits
}

// waitFor tells what a container that is not where it should be waits for.
func waitFor(s *corev1.ContainerStatus, kind WaitKind) Wait {
	w := Wait{Kind: kind, Name: s.Name, Restarts: max(0, int64(s.RestartCount))}
	switch {
	case s.State.Waiting != nil:
		w.Reason, w.Message = s.State.Waiting.Reason, s.State.Waiting.Message
		if imageReasons[w.Reason] {
			w.Kind = ForImage
		} else if last := s.LastTerminationState.Terminated; last != nil && w.Message == "" {
			w.Message = exit(last)
		}
	case s.State.Terminated != nil:
		w.Reason, w.Message = s.State.Terminated.Reason, exit(s.State.Terminated)
	case s.State.Running != nil && kind == ForInitContainer:
		w.Reason = ReasonRunning
	case s.State.Running != nil && s.Started != nil && !*s.Started:
		w.Reason = ReasonStartupProbe
	case s.State.Running != nil:
		w.Reason = ReasonReadinessProbe
	}
	return w
}

// exit says how a container ended.
func exit(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}
