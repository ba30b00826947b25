// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// The delays after which a refused status is tried again double from the first to the last.
const (
	firstRefusalDelay = time.Second
	lastRefusalDelay  = 30 * time.Second
)

// refusals bounds how often a status is tried that the API server refuses for its content.
// Users who may edit a ScheduledRestart can cause that at each write, and each edit has it
// reconciled. It also remembers why a tick could not be sent.
type refusals struct {
	mu  sync.Mutex
	all map[types.NamespacedName]refusal
	// sends are the ticks that the API server refused to have sent.
	sends map[types.NamespacedName]refusedSend
}

// refusedSend is why a tick could not be sent.
type refusedSend struct {
	uid  types.UID
	tick time.Time
	why  string
}

// refusal is the last one of a ScheduledRestart.
type refusal struct {
	uid   types.UID
	delay time.Duration
	until time.Time
}

func newRefusals() *refusals {
	return &refusals{all: map[types.NamespacedName]refusal{}, sends: map[types.NamespacedName]refusedSend{}}
}

// noteSend takes in why the tick of the restart in progress could not be sent.
func (r *refusals) noteSend(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		delete(r.sends, key)
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
		r.sends[key] = refusedSend{restart.UID, restart.Status.Active.ScheduledTime.Time, text.Shorten(err.Error(), tidekeeperv1.MaxRefusalLength)}
	}
}

// ofSend returns why the tick of the restart in progress could not be sent, or "".
func (r *refusals) ofSend(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.sends[key]
	if active := restart.Status.Active; ok && active != nil && last.uid == restart.UID && last.tick.Equal(active.ScheduledTime.Time) {
		return last.why
	}
	delete(r.sends, key)
	return ""
}

// until returns before when the status of a ScheduledRestart is not tried again, zero if it may
// be now.
func (r *refusals) until(key types.NamespacedName, uid types.UID, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.all[key]
	if !ok || last.uid != uid || !now.Before(last.until) || last.until.Sub(now) > last.delay {
		return time.Time{} // The last case: the clock was set back.
	}
	return last.until
}

// note takes in whether a status was refused.
func (r *refusals) note(key types.NamespacedName, uid types.UID, refused bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.all[key]
	switch {
	case !refused:
		delete(r.all, key)
	case !ok || last.uid != uid:
		r.all[key] = refusal{uid, firstRefusalDelay, now.Add(firstRefusalDelay)}
	default:
		delay := min(2*last.delay, lastRefusalDelay)
		r.all[key] = refusal{uid, delay, now.Add(delay)}
	}
}

// forget drops what is kept of a ScheduledRestart that was deleted.
func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, key)
	delete(r.sends, key)
}
