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

// requestAhead is the maximum time by which a requested time may be in the future. A time that is
// further ahead, or before 1970, is rejected as a mistake. A year that does not have four digits
// could not be written to the status.
const requestAhead = 366 * 24 * time.Hour

// RequestedTime returns the time in the annotation that requests a restart, truncated to seconds;
// zero without a request.
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

// requestTrigger starts restarts that are requested by an annotation.
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

// candidate returns the requested restart if it is due. If it is not due yet, the next decision is
// scheduled for the requested time.
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

// upcoming returns the undecided request, whether or not it is due; nil if there is none.
func (t *requestTrigger) upcoming() *candidate {
	at := t.pending()
	if at.IsZero() {
		return nil
	}
	return newCandidate(t, tidekeeperv1.TriggerRequest, at)
}

// pending returns the time of the undecided request; zero if there is none.
func (t *requestTrigger) pending() time.Time {
	at, err := RequestedTime(t.state.restart, t.state.now)
	if last := t.state.status.LastRequestTime; err != nil || last != nil && !at.After(last.Time) {
		return time.Time{}
	}
	return at
}

// withdrawn reports whether the restart in progress was requested by an annotation that has since
// been removed or set to another time.
func (t *requestTrigger) withdrawn(active *tidekeeperv1.ActiveRestart) bool {
	if active.Trigger != tidekeeperv1.TriggerRequest {
		return false
	}
	at, _ := RequestedTime(t.state.restart, t.state.now)
	return !at.Equal(active.ScheduledTime.Time)
}

// observe records a waiting request as skipped if its annotation was removed or set to another
// time.
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
		// The waiting request has been decided, so another request for the same time does not count
		// as new. A request for an earlier time is still served.
		status.LastRequestTime = pending
	}
}

// note records the waiting request in the status, since the annotation may be overwritten without
// leaving any other trace of the request.
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
