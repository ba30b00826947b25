// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// mostEvents is the maximum number of events shown for an object.
const mostEvents = 10

// Event describes a Kubernetes event.
type Event struct {
	LastSeen time.Time `json:"lastSeen"`
	Type     string    `json:"type"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
}

// Events returns the mostEvents most recent of the given events, the latest last.
func Events(events []corev1.Event) []Event {
	shown := make([]Event, 0, len(events))
	for i := range events {
		e := &events[i]
		shown = append(shown, Event{LastSeen: pods.LastSeen(e), Type: e.Type, Reason: e.Reason, Message: e.Message})
	}
	slices.SortStableFunc(shown, func(a, b Event) int { return a.LastSeen.Compare(b.LastSeen) })
	return shown[max(0, len(shown)-mostEvents):]
}
