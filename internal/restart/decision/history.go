// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// history has the records of the status, the latest first, and the ticks that are decided now.
type history struct {
	past, added []tidekeeperv1.RestartRecord
	now         time.Time
}

// record decides a tick. It is put on top of the history when all is decided, see [history.keep].
// A record that the API server would refuse is made to fit here, as much of it comes
// from the target: a record that can never be written would keep its restart from ending.
func (h *history) record(r tidekeeperv1.RestartRecord) {
	r.CompletedTime = metav1.Time{Time: h.now}
	r.Message = text.Shorten(r.Message, tidekeeperv1.MaxRecordMessageLength)
	r.Pods, r.PodsLeftOut = max(0, r.Pods), max(0, r.PodsLeftOut)
	h.added = append(h.added, r)
}

// lastRecorded returns when the last tick was recorded, and false if none has been.
func (h *history) lastRecorded() (at time.Time, ok bool) {
	if len(h.added) > 0 {
		return h.now, true
	}
	if len(h.past) > 0 {
		return h.past[0].CompletedTime.Time, true
	}
	return time.Time{}, false
}

// lastDuration returns how long the last restart took that succeeded, 0 if that is not known.
func (h *history) lastDuration() time.Duration {
	for i := len(h.added) - 1; i >= 0; i-- {
		if took, ok := LastDuration(h.added[i : i+1]); ok {
			return took
		}
	}
	took, _ := LastDuration(h.past)
	return took
}

// keep puts the added records on top of the past records, and returns them. The records of the input
// are not touched.
func (h *history) keep(limit int) []tidekeeperv1.RestartRecord {
	if len(h.added) > 0 || len(h.past) > limit {
		room := make([]tidekeeperv1.RestartRecord, 0, min(len(h.past)+len(h.added), max(limit, len(h.past))))
		h.past = Keep(append(room, h.past...), h.added, limit)
	}
	return h.past
}

// LastDuration returns how long the last restart took that succeeded, and false if there is none
// in the history.
func LastDuration(history []tidekeeperv1.RestartRecord) (took time.Duration, ok bool) {
	for i := range history {
		if r := &history[i]; r.Outcome == tidekeeperv1.OutcomeSucceeded && r.StartedTime != nil {
			return max(0, r.CompletedTime.Sub(r.StartedTime.Time)), true
		}
	}
	return 0, false
}

// HistoryLimit returns how many records a history has at most.
func HistoryLimit(spec *tidekeeperv1.ScheduledRestartSpec) int { return int(max(1, spec.HistoryLimit)) }

// Keep puts records on top of a history, the latest first, and drops the oldest records over the
// limit. It uses the room of the history that it is given.
func Keep(history, records []tidekeeperv1.RestartRecord, limit int) []tidekeeperv1.RestartRecord {
	if n := len(records); n > 0 {
		kept := min(len(history), max(0, limit-n))
		for len(history) < kept+n {
			history = append(history, tidekeeperv1.RestartRecord{})
		}
		copy(history[n:], history[:kept])
		for i := range records {
			history[i] = records[n-1-i]
		}
		history = history[:kept+n]
	}
	return history[:min(len(history), limit)]
}
