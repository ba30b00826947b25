// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// SummaryCondition is the type of a condition that pods have in the manager's
// cache only. It sums the start-up up in some 150 bytes, where all that a
// timeline is made from would take several times as much:
//
//   - True: the pod is ready, since its LastTransitionTime; the message has the
//     stages, and the reason the restart that made the pod, if one did.
//   - False: the pod is not ready, and it cannot be told that it never was.
//
// A pod without it has never been ready.
const SummaryCondition corev1.PodConditionType = "tidekeeper.dev/start-up"

// Summarize returns the condition SummaryCondition of a pod, or nil if it has
// none. Of a pod that is summed up already it returns what is there.
func Summarize(pod *corev1.Pod) *corev1.PodCondition {
	if c := Condition(pod, SummaryCondition); c != nil {
		return &corev1.PodCondition{
			Type: SummaryCondition, Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		}
	}
	ready := Condition(pod, corev1.PodReady)
	switch {
	case isTrue(ready):
		return &corev1.PodCondition{
			Type: SummaryCondition, Status: corev1.ConditionTrue, LastTransitionTime: ready.LastTransitionTime,
			Reason: pod.Annotations[tidekeeperv1.RestartedAtAnnotation], Message: encode(stagesOf(pod)),
		}
	case mayHaveBeenReady(pod, ready):
		return &corev1.PodCondition{Type: SummaryCondition, Status: corev1.ConditionFalse}
	}
	return nil
}

// RestartedAt returns which restart made a pod that is summed up and ready: the
// annotation kubectl.kubernetes.io/restartedAt, "" if there is none.
func RestartedAt(pod *corev1.Pod) string {
	if c := Condition(pod, SummaryCondition); isTrue(c) {
		return c.Reason
	}
	return ""
}

// ReadyAfter returns how long a pod that is summed up took from its creation
// until it was ready; false if it is not ready, or tells what cannot be.
func ReadyAfter(pod *corev1.Pod) (time.Duration, bool) {
	c := Condition(pod, SummaryCondition)
	if !isTrue(c) || pod.CreationTimestamp.IsZero() {
		return 0, false
	}
	created, ready := pod.CreationTimestamp.Truncate(Grain), c.LastTransitionTime.Truncate(Grain)
	return ready.Sub(created), possible(created, ready)
}

// mayHaveBeenReady tells whether a pod that is not ready could have been before.
// It never was if it is not ready since before its containers first started;
// when that was, is known only if none was started again.
func mayHaveBeenReady(pod *corev1.Pod, ready *corev1.PodCondition) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > 0 {
			return true
		}
	}
	started := containersStarted(pod)
	return started.reached && (ready == nil || !ready.LastTransitionTime.Truncate(Grain).Before(started.at.Truncate(Grain)))
}

// unknown stands, in a summary, for a stage whose length is not known.
const unknown = "-"

// encode writes how many seconds each stage took, between commas.
func encode(t Timeline) string {
	fields := make([]string, len(t.Stages))
	estimated := false // the start of this stage
	for i, s := range t.Stages {
		fields[i] = strconv.FormatInt(int64(s.Length/Grain), 10)
		if estimated || s.Estimated {
			fields[i] = unknown
		}
		estimated = s.Estimated
	}
	return strings.Join(fields, ",")
}

// decode reads what encode has written: how long each stage took, without those
// of which it is not known.
func decode(text string) map[StageName]time.Duration {
	lengths := map[StageName]time.Duration{}
	names := StageNames()
	for i, field := range strings.Split(text, ",") {
		if seconds, err := strconv.ParseUint(field, 10, 32); err == nil && i < len(names) {
			lengths[names[i]] = time.Duration(seconds) * Grain
		}
	}
	return lengths
}
