// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// SummaryCondition is the type of the condition that summarizes a pod's startup in the manager's
// cache; pods in the API server do not have it. The summary takes about 150 bytes. The fields from
// which a timeline is computed would take several times as much.
//
//   - True: the pod has been ready since LastTransitionTime. The message contains the durations
//     of the stages; the reason contains the time of the restart that created the pod, if any.
//   - False: the pod is not ready, and may have been ready before.
//
// A pod without this condition was never Ready.
//
// The summary has the form of a condition because indexes, event handlers and lists all receive a
// Pod, so it must be stored in a field of Pod.
const SummaryCondition corev1.PodConditionType = "tidekeeper.dev/start-up"

// Summary returns the condition SummaryCondition of a pod from the manager's cache. It returns nil
// if the pod was never Ready.
func Summary(pod *corev1.Pod) *corev1.PodCondition { return pods.Condition(pod, SummaryCondition) }

// IsReady reports whether a condition, which may be nil, is the startup summary of a pod that is
// Ready.
func IsReady(c *corev1.PodCondition) bool { return c != nil && c.Type == SummaryCondition && isTrue(c) }

// Summarize computes a pod's condition SummaryCondition. It returns nil if the pod was never Ready.
// If the pod already has the condition, it returns a copy.
func Summarize(pod *corev1.Pod) *corev1.PodCondition {
	if c := Summary(pod); c != nil {
		return &corev1.PodCondition{
			Type: SummaryCondition, Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: text.Cut(c.Reason, longestRestart), Message: text.Cut(c.Message, longestStages),
		}
	}
	ready := pods.Condition(pod, corev1.PodReady)
	switch {
	case isTrue(ready):
		return &corev1.PodCondition{
			Type: SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: ready.LastTransitionTime,
			Reason: text.Cut(pod.Annotations[tidekeeperv1.RestartedAtAnnotation], longestRestart), Message: encodeStages(stagesOf(pod)),
		}
	case mayHaveBeenReady(pod, ready):
		return &corev1.PodCondition{Type: SummaryCondition, Status: corev1.ConditionFalse}
	}
	return nil
}

// longestRestart and longestStages are the maximum lengths of a summary's reason and message in
// bytes. The reason is the time of the restart that created the pod, and a valid time is shorter.
// The message contains the encoded durations.
const (
	longestRestart = 64
	longestStages  = 256
)

// RestartedAt returns the time of the restart that created a Ready pod, from the pod's summary. It
// is the value of the annotation kubectl.kubernetes.io/restartedAt, or "" if no restart created the
// pod.
func RestartedAt(pod *corev1.Pod) string {
	if c := Summary(pod); isTrue(c) {
		return c.Reason
	}
	return ""
}

// TimeToReady returns the time from a pod's creation until it became Ready, from the pod's summary.
// It returns false if the pod is not Ready or if its times are implausible.
func TimeToReady(pod *corev1.Pod) (time.Duration, bool) {
	c := Summary(pod)
	if !isTrue(c) || pod.CreationTimestamp.IsZero() {
		return 0, false
	}
	created, ready := pod.CreationTimestamp.Truncate(Resolution), c.LastTransitionTime.Truncate(Resolution)
	return ready.Sub(created), plausible(created, ready)
}

// mayHaveBeenReady reports whether a pod that is not Ready may have been Ready before. A pod was
// never Ready if its condition Ready last changed before its containers were first started. The
// first start is known only if no container was restarted.
func mayHaveBeenReady(pod *corev1.Pod, ready *corev1.PodCondition) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > 0 {
			return true
		}
	}
	started := endOfContainerStarts(pod)
	return started.reached && (ready == nil || !ready.LastTransitionTime.Truncate(Resolution).Before(started.at.Truncate(Resolution)))
}

// unknownDuration replaces the duration in a summary if the start or the end of the stage is
// unknown.
const unknownDuration = "-"

// encodeStages returns the stages' durations in seconds, separated by commas.
func encodeStages(t Timeline) string {
	fields := make([]string, len(t.Stages))
	startEstimated := false
	for i, s := range t.Stages {
		fields[i] = strconv.FormatInt(int64(s.Duration/Resolution), 10)
		if startEstimated || s.Estimated {
			fields[i] = unknownDuration
		}
		startEstimated = s.Estimated
	}
	return strings.Join(fields, ",")
}

// StageDurations returns the durations of the stages in a summary. It omits stages with an unknown
// duration.
func StageDurations(summary *corev1.PodCondition) map[StageName]time.Duration {
	durations := map[StageName]time.Duration{}
	names := StageNames()
	for i, field := range strings.Split(summary.Message, ",") {
		if seconds, err := strconv.ParseUint(field, 10, 32); err == nil && i < len(names) {
			durations[names[i]] = time.Duration(seconds) * Resolution
		}
	}
	return durations
}
