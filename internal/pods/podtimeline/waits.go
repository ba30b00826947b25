// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// WaitKind classifies the reasons for which a pod waits.
type WaitKind string

// Kinds of reasons for which a pod waits.
const (
	// ForScheduler means that no node fits the pod or that a scheduling gate holds the pod back.
	// Reason and Message are taken from the condition PodScheduled.
	ForScheduler WaitKind = "Scheduler"
	// ForImage means that a container's image cannot be pulled or used.
	ForImage WaitKind = "Image"
	// ForInitContainer means that an init container has not completed or, with [ReasonCompleted],
	// that it has completed.
	ForInitContainer WaitKind = "InitContainer"
	// ForContainer means that a container does not start or is not ready.
	ForContainer WaitKind = "Container"
	// ForRestart means that a container exited and was restarted.
	ForRestart WaitKind = "Restart"
	// ForReadinessGate means that the condition of one of the pod's readiness gates is not True.
	ForReadinessGate WaitKind = "ReadinessGate"
)

// Wait describes a reason for which a pod waits or has waited.
type Wait struct {
	Kind WaitKind
	// Name is the name of the container or readiness gate for which the pod waits.
	Name string
	// Reason and Message are taken from the pod's status if it contains them.
	Reason, Message string
	// Duration is the run time of a completed init container.
	Duration time.Duration
	// Restarts is the number of restarts of the container; 0 if the pod does not wait for a
	// container.
	Restarts int64
}

// Reasons that are derived from the state of a container or readiness gate, because the pod's
// status contains no reason.
const (
	// ReasonRunning means that an init container is running.
	ReasonRunning = "Running"
	// ReasonCompleted means that an init container has completed.
	ReasonCompleted = "Completed"
	// ReasonStartupProbe means that a container's startup probe has not succeeded yet.
	ReasonStartupProbe = "StartupProbe"
	// ReasonReadinessProbe means that a container is running, but its readiness probe fails.
	ReasonReadinessProbe = "ReadinessProbe"
	// ReasonNotSet means that the pod lacks the condition of a readiness gate.
	ReasonNotSet = "NotSet"
)

// imageReasons is the set of reasons by which the kubelet reports that a container's image cannot
// be pulled or used.
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

// waitsForInit returns a Wait for each init container that has not completed, and a Wait with the
// run time for each init container that has completed. A sidecar keeps running, so there is no Wait
// for it once it has started.
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

// waitsForStart returns a Wait for each container that was never started.
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

// waitsForContainers returns a Wait for each container that is not ready. For a completed stage, it
// returns a Wait for each container that was restarted during the startup.
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

// waitsForGates returns a Wait for each readiness gate that is not True. For a completed stage, it
// returns a Wait for the gate that became True last, if that was after the containers became ready.
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

// waitFor returns the reason for which the pod waits for a container.
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

// exitText describes a container's termination: the exit code and the termination message, if any.
func exitText(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}
