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

// SummaryCondition is the type of a condition that pods have in the manager's cache only. It
// summarizes the startup in some 150 bytes; the fields that a timeline is computed from would
// take several times as much.
//
//   - True: the pod is ready, since LastTransitionTime. The message has the durations
//     of the stages, and the reason has the restart that created the pod, if one did.
//   - False: the pod is not ready, and may have been ready before.
//
// A pod without the condition was never Ready.
//
// The summary is a condition because indexes, event handlers and lists all receive a Pod, so
// that the summary must be in one of its fields.
const SummaryCondition corev1.PodConditionType = "tidekeeper.dev/start-up"

// Summary returns the condition SummaryCondition of a pod from the manager's cache; nil if the
// pod was never Ready.
func Summary(pod *corev1.Pod) *corev1.PodCondition { return pods.Condition(pod, SummaryCondition) }

// Summarize returns the condition SummaryCondition for a pod; nil if the pod was never Ready.
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

// longestRestart is the maximum length that is kept of the annotation with the restart that
// created a pod, more than the length of a time, and longestStages the maximum length of the
// durations, both in bytes.
const (
	longestRestart = 64
	longestStages  = 256
)

// RestartedAt returns the restart that created a pod with a summary that is Ready: the value of
// the annotation kubectl.kubernetes.io/restartedAt, or "".
func RestartedAt(pod *corev1.Pod) string {
	if c := Summary(pod); isTrue(c) {
		return c.Reason
	}
	return ""
}

// TimeToReady returns the time from creation to Ready of a pod with a summary; false if the pod
// is not Ready, or its times are impossible.
func TimeToReady(pod *corev1.Pod) (time.Duration, bool) {
	c := Summary(pod)
	if !isTrue(c) || pod.CreationTimestamp.IsZero() {
		return 0, false
	}
	created, ready := pod.CreationTimestamp.Truncate(Resolution), c.LastTransitionTime.Truncate(Resolution)
	return ready.Sub(created), plausible(created, ready)
}

// mayHaveBeenReady reports whether a pod that is not Ready may have been Ready before. It was
// never Ready if the condition last changed before its containers first started; and the first
// start is known only if no container was restarted.
func mayHaveBeenReady(pod *corev1.Pod, ready *corev1.PodCondition) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > 0 {
			return true
		}
	}
	started := endOfContainerStarts(pod)
	return started.reached && (ready == nil || !ready.LastTransitionTime.Truncate(Resolution).Before(started.at.Truncate(Resolution)))
}

// unknownDuration is the text in a summary for the duration of a stage whose start or end is
// unknown.
const unknownDuration = "-"

// encodeStages writes the durations of the stages in seconds, separated by commas.
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

// StageDurations returns the duration of each stage in a summary, without stages of unknown
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
