// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// requestAhead is how far in the future a request may be, and none may be before 1970:
// anything else is a mistake, and a year that does not have four digits in UTC could
// not be written into the status.
const requestAhead = 366 * 24 * time.Hour

// RequestedTime returns the time in the annotation that requests a restart, in whole
// seconds; the zero time if there is none.
func RequestedTime(restart *tidekeeperv1.ScheduledRestart, now time.Time) (time.Time, error) {
	value := restart.Annotations[tidekeeperv1.RestartNowAnnotation]
	if value == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("the annotation %s must be a time such as %s, and is %.64q",
			tidekeeperv1.RestartNowAnnotation, "2026-01-31T15:04:05Z", value)
	}
	if at = at.Truncate(time.Second).UTC(); at.Unix() < 0 || at.After(now.Add(requestAhead)) {
		return time.Time{}, fmt.Errorf("the annotation %s must be a time from 1970 on and at most a year ahead, and is %.64q",
			tidekeeperv1.RestartNowAnnotation, value)
	}
	return at, nil
}

// requested returns the tick that the annotation requests, if it is due.
func (d *decider) requested() *candidate {
	at := d.requestedTime()
	if at.IsZero() {
		return nil
	}
	if at.After(d.in.Now) {
		d.wakeAt(at)
		return nil
	}
	return &candidate{tick: at, trigger: tidekeeperv1.TriggerRequest, first: at}
}

// requestedTime returns the time of a request that is not decided yet, or the zero time.
func (d *decider) requestedTime() time.Time {
	at, err := RequestedTime(d.in.Restart, d.in.Now)
	if err != nil || d.out.Status.LastRequestTime != nil && !at.After(d.out.Status.LastRequestTime.Time) {
		return time.Time{}
	}
	return at
}

// observeRequest notices that a request that was waiting is gone from the annotation.
func (d *decider) observeRequest() {
	pending := d.out.Status.PendingRequestTime
	if pending == nil {
		return
	}
	at, _ := RequestedTime(d.in.Restart, d.in.Now)
	if at.Equal(pending.Time) {
		return
	}
	reason, message := tidekeeperv1.ReasonWithdrawn, "the request was withdrawn before the restart was started"
	if !at.IsZero() {
		reason, message = tidekeeperv1.ReasonSuperseded, fmt.Sprintf("the request for %s replaced it before the restart was started", formatTime(at))
	}
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: *pending, Trigger: tidekeeperv1.TriggerRequest,
		Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: message,
	})
	d.out.Status.PendingRequestTime = nil
	if at.IsZero() || at.After(pending.Time) {
		// It is decided: the same request again is not a new one. An earlier one is
		// still to be served.
		d.out.Status.LastRequestTime = pending
	}
}

// notePendingRequest records which request is waiting: overwriting the annotation leaves
// no other trace of it.
func (d *decider) notePendingRequest() {
	pending, last := d.out.Status.PendingRequestTime, d.out.Status.LastRequestTime
	if pending != nil && last != nil && !pending.After(last.Time) {
		d.out.Status.PendingRequestTime = nil
	}
	if c := d.requested(); c != nil {
		d.out.Status.PendingRequestTime = &metav1.Time{Time: c.tick}
	}
}
