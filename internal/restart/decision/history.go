// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// history holds the history entries in the status, latest first, and the entries that the decision
// adds.
type history struct {
	past, added []tidekeeperv1.RestartRecord
	now         time.Time
}

// record adds an entry for a decided tick (the scheduled time of a restart). [history.keep] later
// puts it on top of the history. An entry that the API server would reject is shortened here, since
// much of its content comes from the target: if the entry could never be written, its restart would
// never end.
func (h *history) record(r tidekeeperv1.RestartRecord) {
	r.CompletedTime = metav1.Time{Time: h.now}
	r.Message = text.Shorten(r.Message, tidekeeperv1.MaxRecordMessageLength)
	r.Pods, r.PodsLeftOut = max(0, r.Pods), max(0, r.PodsLeftOut)
	h.added = append(h.added, r)
}

// lastRecorded returns the time at which the latest history entry was added. It returns false if
// there is no entry.
func (h *history) lastRecorded() (at time.Time, ok bool) {
	if len(h.added) > 0 {
		return h.now, true
	}
	if len(h.past) > 0 {
		return h.past[0].CompletedTime.Time, true
	}
	return time.Time{}, false
}

// ReadsHistory reports whether decisions about a ScheduledRestart depend on its whole history. They
// do so only with windows, since the remaining time of a window is compared with the duration of
// the last success. Otherwise the latest entry is enough. Decisions about the ScheduledRestarts
// that name this one in spec.after always depend on the whole history.
func ReadsHistory(spec *tidekeeperv1.ScheduledRestartSpec) bool { return len(spec.Windows) > 0 }

// lastDuration returns the duration of the last successful restart; 0 if unknown.
func (h *history) lastDuration() time.Duration {
	for i := len(h.added) - 1; i >= 0; i-- {
		if took, ok := LastDuration(h.added[i : i+1]); ok {
			return took
		}
	}
	took, _ := LastDuration(h.past)
	return took
}

// keep returns the new history entries followed by the past entries, up to the limit. It does not
// modify the history entries of the [Input].
func (h *history) keep(limit int) []tidekeeperv1.RestartRecord {
	if len(h.added) > 0 || len(h.past) > limit {
		room := make([]tidekeeperv1.RestartRecord, 0, min(len(h.past)+len(h.added), max(limit, len(h.past))))
		h.past = Keep(append(room, h.past...), h.added, limit)
	}
	return h.past
}

// LastDuration returns the duration of the last successful restart; false if the history has none.
func LastDuration(history []tidekeeperv1.RestartRecord) (took time.Duration, ok bool) {
	for i := range history {
		if r := &history[i]; r.Outcome == tidekeeperv1.OutcomeSucceeded && r.StartedTime != nil {
			return max(0, r.CompletedTime.Sub(r.StartedTime.Time)), true
		}
	}
	return 0, false
}

// HistoryLimit returns the maximum number of history entries.
func HistoryLimit(spec *tidekeeperv1.ScheduledRestartSpec) int { return int(max(1, spec.HistoryLimit)) }

// Keep adds entries, ordered oldest first, to a history that is ordered latest first. It drops the
// oldest entries beyond the limit, and reuses the array of the given history.
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
