// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LastSeen returns when an event last happened. Which field says so depends on the API by
// which it was written, and on whether it happened more than once.
func LastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}

// Times returns how often an event happened, at least once.
func Times(e *corev1.Event) int32 {
	if e.Series != nil {
		return max(1, e.Series.Count)
	}
	return max(1, e.Count)
}
