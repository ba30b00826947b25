// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// Bounds of the delay before a rejected status is written again. The delay doubles after each
// rejection.
const (
	firstRefusalDelay = time.Second
	lastRefusalDelay  = 30 * time.Second
)

// refusals limits the rate of status writes that the API server rejects because of their content.
// Users who may edit a ScheduledRestart can cause such rejections, and each of their edits triggers
// a reconcile. The type also stores the reason for which the tick (the scheduled time) of a restart
// could not be sent to its target.
type refusals struct{ memories *memories }

// failedSend describes a failed attempt to send a tick (the scheduled time of a restart) to its
// target.
type failedSend struct {
	tickOf
	decision.SendFailure
}

// refusal describes the last status write that the API server rejected. Until the time until, which
// is delay after the rejection, the status is not written again.
type refusal struct {
	uid   types.UID
	delay time.Duration
	until time.Time
}

// noteSend stores the error of an attempt to send the tick (the scheduled time) of the restart in
// progress to its target. It ignores the errors that the target was changed or deleted. A nil error
// clears the stored error.
func (r *refusals) noteSend(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, err error) {
	r.memories.with(key, func(m *memory) {
		switch {
		case err == nil:
			m.failedSend = nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			m.failedSend = &failedSend{tickInProgress(restart), decision.SendFailure{
				Error: text.Shorten(err.Error(), tidekeeperv1.MaxRefusalLength), Refused: isRefused(err),
			}}
		}
	})
}

// isRefused reports whether the API server rejected a patch of a target because of its content or
// the manager's rights. An admission webhook that rejects the patch, or cannot be called, also
// results in one of these errors.
func isRefused(err error) bool {
	return isContentRejected(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err)
}

// ofSend returns the failure of the last attempt to send the tick (the scheduled time) of the
// restart in progress to its target; zero if the attempt did not fail.
func (r *refusals) ofSend(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (failure decision.SendFailure) {
	r.memories.with(key, func(m *memory) {
		if m.failedSend != nil && m.failedSend.isInProgress(restart) {
			failure = m.failedSend.SendFailure
			return
		}
		m.failedSend = nil
	})
	return failure
}

// until returns the time before which a rejected status of a ScheduledRestart must not be written
// again; zero if it may be written now.
func (r *refusals) until(key types.NamespacedName, uid types.UID, now time.Time) (until time.Time) {
	r.memories.with(key, func(m *memory) {
		last := m.refusal
		if last == nil || last.uid != uid || !now.Before(last.until) || last.until.Sub(now) > last.delay {
			return // If last.until is further ahead than the delay, the clock was set back.
		}
		until = last.until
	})
	return until
}

// note records whether the API server rejected a status write.
func (r *refusals) note(key types.NamespacedName, uid types.UID, refused bool, now time.Time) {
	r.memories.with(key, func(m *memory) {
		last := m.refusal
		switch {
		case !refused:
			m.refusal = nil
		case last == nil || last.uid != uid:
			m.refusal = &refusal{uid, firstRefusalDelay, now.Add(firstRefusalDelay)}
		default:
			delay := min(2*last.delay, lastRefusalDelay)
			m.refusal = &refusal{uid, delay, now.Add(delay)}
		}
	})
}
