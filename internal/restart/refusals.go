// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// Delays between writes of a status that is refused, doubling from the first to the last.
const (
	firstRefusalDelay = time.Second
	lastRefusalDelay  = 30 * time.Second
)

// refusals limits the writes of a status that the API server refuses for its content. Users who may edit a
// ScheduledRestart can cause such refusals, and each of their edits triggers a reconcile. It also remembers
// why a tick could not be sent.
type refusals struct{ memories *memories }

// refusedSend is the reason for which a tick could not be sent.
type refusedSend struct {
	tickOf
	why string
}

// refusal is the last refusal of a status write.
type refusal struct {
	uid   types.UID
	delay time.Duration
	until time.Time
}

// noteSend records why the tick of the restart in progress could not be sent.
func (r *refusals) noteSend(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, err error) {
	r.memories.with(key, func(m *memory) {
		switch {
		case err == nil:
			m.refusedSend = nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			m.refusedSend = &refusedSend{tickInProgress(restart), text.Shorten(err.Error(), tidekeeperv1.MaxRefusalLength)}
		}
	})
}

// ofSend returns why the tick of the restart in progress could not be sent, or "".
func (r *refusals) ofSend(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (why string) {
	r.memories.with(key, func(m *memory) {
		if m.refusedSend != nil && m.refusedSend.isInProgress(restart) {
			why = m.refusedSend.why
			return
		}
		m.refusedSend = nil
	})
	return why
}

// until returns the time before which the status of a ScheduledRestart is not written again; zero if it may
// be written now.
func (r *refusals) until(key types.NamespacedName, uid types.UID, now time.Time) (until time.Time) {
	r.memories.with(key, func(m *memory) {
		last := m.refusal
		if last == nil || last.uid != uid || !now.Before(last.until) || last.until.Sub(now) > last.delay {
			return // In the last case, the clock was set back.
		}
		until = last.until
	})
	return until
}

// note records whether a status write was refused.
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
