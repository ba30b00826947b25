// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
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

// requestTrigger has the restart that an annotation requests.
type requestTrigger struct {
	state   *state
	windows schedule.Windows
	history *history
	wake    *alarm
}

func (t *requestTrigger) times(tick time.Time) (due, deadline time.Time) {
	due = opensAt(t.windows, tick)
	return due, due.Add(seconds(t.state.spec.StartingDeadlineSeconds))
}

// candidate returns the request if it is due, and wakes then if it is not.
func (t *requestTrigger) candidate() *candidate {
	at := t.pending()
	if at.IsZero() {
		return nil
	}
	if at.After(t.state.now) {
		t.wake.set(at)
		return nil
	}
	return newCandidate(t, tidekeeperv1.TriggerRequest, at)
}

func (t *requestTrigger) confirm() Need { return NeedNothing }

func (t *requestTrigger) pass(c *candidate) {
	t.state.status.LastRequestTime = &metav1.Time{Time: c.tick}
}

// upcoming returns the request, due or not, or nil.
func (t *requestTrigger) upcoming() *candidate {
	at := t.pending()
	if at.IsZero() {
		return nil
	}
	return newCandidate(t, tidekeeperv1.TriggerRequest, at)
}

// pending returns the time of a request that is not decided yet, or the zero time.
func (t *requestTrigger) pending() time.Time {
	at, err := RequestedTime(t.state.restart, t.state.now)
	if last := t.state.status.LastRequestTime; err != nil || last != nil && !at.After(last.Time) {
		return time.Time{}
	}
	return at
}

// withdrawn reports whether the restart in progress was requested by an annotation that asks
// for another time now, or for none.
func (t *requestTrigger) withdrawn(active *tidekeeperv1.ActiveRestart) bool {
	if active.Trigger != tidekeeperv1.TriggerRequest {
		return false
	}
	at, _ := RequestedTime(t.state.restart, t.state.now)
	return !at.Equal(active.ScheduledTime.Time)
}

// observe notices that a request that was waiting is gone from the annotation.
func (t *requestTrigger) observe() {
	status := t.state.status
	pending := status.PendingRequestTime
	if pending == nil {
		return
	}
	at, _ := RequestedTime(t.state.restart, t.state.now)
	if at.Equal(pending.Time) {
		return
	}
	reason, message := tidekeeperv1.ReasonWithdrawn, "the request was withdrawn before the restart was started"
	if !at.IsZero() {
		reason, message = tidekeeperv1.ReasonSuperseded, fmt.Sprintf("the request for %s replaced it before the restart was started", formatTime(at))
	}
	t.history.record(tidekeeperv1.RestartRecord{
		ScheduledTime: *pending, Trigger: tidekeeperv1.TriggerRequest,
		Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: message,
	})
	status.PendingRequestTime = nil
	if at.IsZero() || at.After(pending.Time) {
		// The waiting request is decided: the same request again is not a new request. An earlier
		// request is still to be served.
		status.LastRequestTime = pending
	}
}

// note records which request is waiting: overwriting the annotation leaves no other trace of it.
func (t *requestTrigger) note() {
	status := t.state.status
	pending, last := status.PendingRequestTime, status.LastRequestTime
	if pending != nil && last != nil && !pending.After(last.Time) {
		status.PendingRequestTime = nil
	}
	if c := t.candidate(); c != nil {
		status.PendingRequestTime = &metav1.Time{Time: c.tick}
	}
}
