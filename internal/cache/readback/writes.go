// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package readback

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepFor is the time for which a write is remembered if the object is never read again. If the
// cache were behind for longer, the API server would still reject writes that depend on the
// outdated object.
const keepFor = 10 * time.Minute

// key identifies an object by kind, namespace and name.
type key struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// write describes this client's last write to an object.
type write struct {
	uid types.UID
	// version is the object's resourceVersion after the write.
	version int64
	// created is true if the write may have created the object. If the cache lacks the object after
	// such a write, the cache may be outdated.
	created bool
	// gone is true if the write deleted the object or removed its last finalizer.
	gone bool
	// late is true if the cache did not show the write within maxWait. Later reads of the object
	// then do not wait for the cache again.
	late bool
	at   time.Time
}

// shownBy reports whether the given cached object is at least as new as the write. The object is
// nil if the cache lacks it.
func (w *write) shownBy(object client.Object) bool {
	switch {
	case object == nil:
		return w.gone
	case object.GetUID() != w.uid:
		// The cached object is a different object with the same name. It is newer than an object
		// that the write deleted or changed, and older than an object that the write created.
		return !w.created
	case w.gone:
		return !object.GetDeletionTimestamp().IsZero()
	}
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	return err != nil || version >= w.version
}

// writes remembers the last write to each object until the cache shows it.
type writes struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last map[key]write
	// sweepAt is the number of remembered writes at which old writes are dropped.
	sweepAt int
}

// minSweep is the minimum value of writes.sweepAt, the number of remembered writes at which old
// writes are dropped.
const minSweep = 1000

func newWrites(c clock.PassiveClock) *writes {
	return &writes{clock: c, last: map[key]write{}, sweepAt: minSweep}
}

// add remembers a write. If two responses arrive out of order, the write with the later
// resourceVersion is kept.
func (w *writes) add(k key, latest write) {
	now := w.clock.Now()
	latest.at = now
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.last[k]; ok && before.uid == latest.uid && (before.gone || before.version > latest.version && !latest.gone) {
		return
	}
	w.last[k] = latest
	if len(w.last) < w.sweepAt {
		return
	}
	for k, old := range w.last {
		if now.Sub(old.at) > keepFor {
			delete(w.last, k)
		}
	}
	w.sweepAt = max(minSweep, 2*len(w.last))
}

// missing returns the last write to an object if the given cached object, which may be nil, does
// not show that write. It returns false if the cached object is up to date.
func (w *writes) missing(k key, cached client.Object) (write, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[k]
	if ok && (last.shownBy(cached) || w.clock.Since(last.at) > keepFor) {
		delete(w.last, k)
		ok = false
	}
	return last, ok
}

// forget drops the remembered write to an object, because the cache will never show it.
func (w *writes) forget(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, k)
}

// setLate records that the cache did not show the last write to an object within maxWait.
func (w *writes) setLate(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if late, ok := w.last[k]; ok {
		late.late = true
		w.last[k] = late
	}
}
