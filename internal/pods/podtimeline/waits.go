// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// WaitKind is the kind of reason for which a pod waits.
type WaitKind string

// The kinds of reasons for waiting.
const (
	// ForScheduler: no node fits the pod, or a scheduling gate holds it back. The reason and
	// the message are the scheduler's.
	ForScheduler WaitKind = "Scheduler"
	// ForImage: the image of a container cannot be pulled or used.
	ForImage WaitKind = "Image"
	// ForInitContainer: an init container has not completed; or, with a Duration, it has completed.
	ForInitContainer WaitKind = "InitContainer"
	// ForContainer: a container does not start or is not ready.
	ForContainer WaitKind = "Container"
	// ForRestart: a container ended and was restarted.
	ForRestart WaitKind = "Restart"
	// ForReadinessGate: a condition that the pod lists as a readiness gate is not True.
	ForReadinessGate WaitKind = "ReadinessGate"
)

// Wait is a reason for which a pod waits, or has waited.
type Wait struct {
	Kind WaitKind
	// Name is the name of the container or the readiness gate.
	Name string
	// Reason and Message are the reason and message in the pod's status, if any.
	Reason, Message string
	// Duration is the run time of an init container that has completed.
	Duration time.Duration
	// Restarts is the number of restarts of the container.
	Restarts int64
}

// Reasons that are not in the pod's status.
const (
	// ReasonRunning: an init container is running.
	ReasonRunning = "Running"
	// ReasonCompleted: an init container has completed.
	ReasonCompleted = "Completed"
	// ReasonStartupProbe: a container's startup probe has not succeeded yet.
	ReasonStartupProbe = "StartupProbe"
	// ReasonReadinessProbe: a container runs, but its readiness probe fails.
	ReasonReadinessProbe = "ReadinessProbe"
	// ReasonNotSet: the condition of a readiness gate is not set.
	ReasonNotSet = "NotSet"
)

// imageReasons are the reasons in the kubelet's status of a container without an image.
var imageReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "ErrImageNeverPull": true, "ImageInspectError": true,
	"InvalidImageName": true, "RegistryUnavailable": true, "SignatureValidationFailed": true,
}

func waitsForScheduler(pod *corev1.Pod, stage Stage) []Wait {
	c := pods.Condition(pod, corev1.PodScheduled)
	if stage.Done || c == nil || c.Reason == "" && c.Message == "" {
		return nil
	}
	return []Wait{{Kind: ForScheduler, Reason: c.Reason, Message: c.Message}}
}

// waitsForInit returns the init containers that have not completed; after that, the run time of
// each. Sidecars keep running, so their ends do not count.
func waitsForInit(pod *corev1.Pod, stage Stage) []Wait {
	var waits []Wait
	for _, c := range pod.Spec.InitContainers {
		s := pods.ContainerStatus(pod.Status.InitContainerStatuses, c.Name)
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		switch {
		case s == nil:
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 && !sidecar:
			w := Wait{Kind: ForInitContainer, Name: c.Name, Reason: ReasonCompleted, Restarts: max(0, int64(s.RestartCount))}
			started, finished := s.State.Terminated.StartedAt.Time, s.State.Terminated.FinishedAt.Time
			if !started.IsZero() && plausible(started, finished) {
				w.Duration = finished.Truncate(Resolution).Sub(started.Truncate(Resolution))
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

// waitsForStart returns the containers that were never started.
func waitsForStart(pod *corev1.Pod, stage Stage) []Wait {
	if stage.Done {
		return nil
	}
	var waits []Wait
	for _, c := range pod.Spec.Containers {
		if s := pods.ContainerStatus(pod.Status.ContainerStatuses, c.Name); s != nil {
			if _, started := firstStart(s); !started {
				waits = append(waits, waitFor(s, ForContainer))
			}
		}
	}
	return waits
}

// waitsForContainers returns the containers that are not ready; once all are ready, the
// containers that were restarted.
func waitsForContainers(pod *corev1.Pod, stage Stage) []Wait {
	var waits []Wait
	for _, c := range pod.Spec.Containers {
		s := pods.ContainerStatus(pod.Status.ContainerStatuses, c.Name)
		switch {
		case s == nil:
		case !stage.Done && !s.Ready:
			waits = append(waits, waitFor(s, ForContainer))
		case stage.Done && s.RestartCount > 0 && startedBy(s, stage.End()):
			w := Wait{Kind: ForRestart, Name: s.Name, Restarts: int64(s.RestartCount)}
			if last := s.LastTerminationState.Terminated; last != nil {
				w.Reason, w.Message = last.Reason, exitText(last)
			}
			waits = append(waits, w)
		}
	}
	return waits
}

func startedBy(s *corev1.ContainerStatus, by time.Time) bool {
	return s.State.Running != nil && !s.State.Running.StartedAt.Truncate(Resolution).After(by)
}

// waitsForGates returns the readiness gates that are not True; once all are True, the last gate
// that became True, if that was after the containers were ready.
func waitsForGates(pod *corev1.Pod, stage Stage) []Wait {
	var waits []Wait
	var last time.Time
	for _, gate := range pod.Spec.ReadinessGates {
		c := pods.Condition(pod, gate.ConditionType)
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

// waitFor returns the reason for which a container that has not completed its stage waits.
func waitFor(s *corev1.ContainerStatus, kind WaitKind) Wait {
	w := Wait{Kind: kind, Name: s.Name, Restarts: max(0, int64(s.RestartCount))}
	switch {
	case s.State.Waiting != nil:
		w.Reason, w.Message = s.State.Waiting.Reason, s.State.Waiting.Message
		if imageReasons[w.Reason] {
			w.Kind = ForImage
		} else if last := s.LastTerminationState.Terminated; last != nil && w.Message == "" {
			w.Message = exitText(last)
		}
	case s.State.Terminated != nil:
		w.Reason, w.Message = s.State.Terminated.Reason, exitText(s.State.Terminated)
	case s.State.Running != nil && kind == ForInitContainer:
		w.Reason = ReasonRunning
	case s.State.Running != nil && s.Started != nil && !*s.Started:
		w.Reason = ReasonStartupProbe
	case s.State.Running != nil:
		w.Reason = ReasonReadinessProbe
	}
	return w
}

// exitText describes the end of a container.
func exitText(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}
