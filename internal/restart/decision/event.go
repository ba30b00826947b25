// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// Event returns the type, the reason and the note of the event that reports a history entry.
func Event(ref tidekeeperv1.TargetRef, record *tidekeeperv1.RestartRecord) (eventType, reason, note string) {
	tick := formatTime(record.ScheduledTime.Time)
	if record.EarlierTicks > 0 {
		tick = fmt.Sprintf("%s and %d ticks before it", tick, record.EarlierTicks)
	}
	switch record.Outcome {
	case tidekeeperv1.OutcomeSucceeded:
		return corev1.EventTypeNormal, tidekeeperv1.EventRestartSucceeded, successNote(ref, record, tick)
	case tidekeeperv1.OutcomeSkipped:
		eventType, reason = corev1.EventTypeNormal, tidekeeperv1.EventRestartSkipped
	case tidekeeperv1.OutcomeMissed:
		eventType, reason = corev1.EventTypeWarning, tidekeeperv1.EventRestartMissed
	default:
		eventType, reason = corev1.EventTypeWarning, tidekeeperv1.EventRestartFailed
	}
	return eventType, reason, fmt.Sprintf("%s: %s (tick %s)", record.Reason, record.Message, tick)
}

func successNote(ref tidekeeperv1.TargetRef, record *tidekeeperv1.RestartRecord, tick string) string {
	note := fmt.Sprintf("restarted %s %s, %d pods in %s (tick %s)", ref.Kind, ref.Name, record.Pods,
		record.CompletedTime.Sub(record.StartedTime.Time).Round(time.Second), tick)
	if s := record.PodStartup; s != nil {
		note += fmt.Sprintf("; new pods were ready in %s, at worst %s",
			text.SecondsWithChange(s.MedianSeconds, s.MedianChangeSeconds), text.SecondsWithChange(s.MaxSeconds, s.MaxChangeSeconds))
	}
	if record.PodsLeftOut > 0 {
		note += fmt.Sprintf("; %d pods on nodes that are not ready were left out", record.PodsLeftOut)
	}
	if record.Message != "" {
		note += "; " + record.Message
	}
	return note
}
