// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// record decides a tick. It is put on top of the history when all is decided, see
// [decider.keepHistory]. What the API server would refuse is made to fit here, as much of it comes
// from the target: a record that can never be written would keep its restart from ending.
func (d *decider) record(r tidekeeperv1.RestartRecord) {
	r.CompletedTime = metav1.Time{Time: d.in.Now}
	r.Message = text.Shorten(r.Message, tidekeeperv1.MaxRecordMessageLength)
	r.Pods, r.PodsLeftOut = max(0, r.Pods), max(0, r.PodsLeftOut)
	d.out.Records = append(d.out.Records, r)
}

// lastRecorded returns when the last tick was recorded, and false if none has been.
func (d *decider) lastRecorded() (at time.Time, ok bool) {
	if len(d.out.Records) > 0 {
		return d.in.Now, true
	}
	if history := d.out.Status.History; len(history) > 0 {
		return history[0].CompletedTime.Time, true
	}
	return time.Time{}, false
}

// lastDuration returns how long the last restart took that succeeded, 0 if that is not known.
func (d *decider) lastDuration() time.Duration {
	for i := len(d.out.Records) - 1; i >= 0; i-- {
		if took, ok := LastDuration(d.out.Records[i : i+1]); ok {
			return took
		}
	}
	took, _ := LastDuration(d.out.Status.History)
	return took
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

// keepHistory puts what was recorded on top of the history. The one of the input is not touched.
func (d *decider) keepHistory() {
	status := &d.out.Status
	limit := HistoryLimit(d.spec)
	if d.in.Brief || len(d.out.Records) == 0 && len(status.History) <= limit {
		return
	}
	room := make([]tidekeeperv1.RestartRecord, 0, min(len(status.History)+len(d.out.Records), max(limit, len(status.History))))
	status.History = Keep(append(room, status.History...), d.out.Records, limit)
}

// HistoryLimit returns how many records a history has at most.
func HistoryLimit(spec *tidekeeperv1.ScheduledRestartSpec) int { return int(max(1, spec.HistoryLimit)) }

// Keep puts records on top of a history, the last one first, and drops the oldest ones over the
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
