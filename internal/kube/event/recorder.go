// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event records Kubernetes events. It shortens their notes to the length that the API
// server accepts, and prevents events with different notes from being merged.
package event

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"tidekeeper.dev/tidekeeper/internal/text"
)

const (
	// noteLimit is the maximum length, in bytes, of an event note that the API server accepts.
	noteLimit = 1024

	// maxNotes is the maximum number of different notes recorded for the same object and reason
	// within a time window. Additional notes are replaced with moreNote. Without a limit, users who
	// may edit an object could cause an arbitrary number of different error messages. The window is
	// longer than the time for which client-go waits for the next event of a series, which is at
	// most twelve minutes.
	maxNotes = 20
	window   = 15 * time.Minute

	// moreNote replaces all notes in excess of maxNotes.
	moreNote = "further events with this reason are not recorded"
)

var seed = maphash.MakeSeed()

// Recorder is an [events.EventRecorder] that passes events on to another recorder.
//
// Recorder shortens notes to the length that the API server accepts, and makes client-go merge two
// events only if they have the same note. client-go itself compares all fields except the note:
// without the Recorder, corrections of two nodes within minutes would become a single event with a
// count of two and the note about the first node.
type Recorder struct {
	inner  events.EventRecorder
	scheme *runtime.Scheme
	clock  clock.PassiveClock

	mu       sync.Mutex
	recorded map[subject]*history
	// sweepAt is the number of entries in recorded at which sweep drops outdated entries.
	sweepAt int
}

// subject holds the fields by which client-go decides whether two events are merged, except for the
// object's resourceVersion.
type subject struct {
	object                    types.UID
	eventType, reason, action string
}

// history holds the notes recorded for a subject in the current and in the previous time window.
type history struct {
	since            time.Time
	current, earlier versions
}

// versions maps the hash of each recorded note to the resourceVersion with which its event was
// recorded.
type versions map[uint64]string

// minSweep is the minimum value of Recorder.sweepAt, the number of entries at which outdated
// entries are dropped.
const minSweep = 1000

// NewRecorder returns a recorder that passes events on to `inner`.
func NewRecorder(inner events.EventRecorder, scheme *runtime.Scheme, c clock.PassiveClock) *Recorder {
	return &Recorder{inner: inner, scheme: scheme, clock: c, recorded: map[subject]*history{}, sweepAt: minSweep}
}

// Eventf implements [events.EventRecorder].
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, format string, args ...any) {
	note := text.Shorten(fmt.Sprintf(format, args...), noteLimit)
	ref, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		ctrl.Log.WithName("events").Error(err, "Cannot record an event about an unknown object", "reason", reason, "note", note)
		return
	}
	ref = ref.DeepCopy()
	note, ref.ResourceVersion = r.distinguish(subject{ref.UID, eventType, reason, action}, note, ref.ResourceVersion)
	r.inner.Eventf(ref, related, eventType, reason, action, "%s", note)
}

// distinguish returns the note to record, and the resourceVersion to record it with. If the
// object's resourceVersion is already used for another note, it gets a suffix. The resourceVersion
// is used because it is the only field that client-go compares but users do not see. A repeated
// note gets the same resourceVersion as before.
func (r *Recorder) distinguish(s subject, note, version string) (string, string) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.recorded[s]
	switch {
	case h == nil:
		h = &history{since: now, current: versions{}}
		r.recorded[s] = h
		r.sweep(now)
	case now.Sub(h.since) > window || now.Before(h.since):
		h.since, h.current, h.earlier = now, versions{}, h.current
	}
	hash := maphash.String(seed, note)
	if _, known := h.current[hash]; !known && len(h.current) >= maxNotes {
		ctrl.Log.WithName("events").V(1).Info("Too many different events: an event is not recorded", "uid", s.object, "reason", s.reason, "note", note)
		note, hash = moreNote, maphash.String(seed, moreNote)
	}
	distinct, known := h.current[hash]
	if !known {
		distinct, known = h.earlier[hash]
	}
	if !known {
		distinct = version
		for n := 2; h.current.contain(distinct) || h.earlier.contain(distinct); n++ {
			distinct = version + "." + strconv.Itoa(n)
		}
	}
	h.current[hash] = distinct
	return note, distinct
}

// sweep drops outdated entries of r.recorded if there are at least sweepAt entries. An entry is
// outdated if its current window began more than two windows ago.
func (r *Recorder) sweep(now time.Time) {
	if len(r.recorded) < r.sweepAt {
		return
	}
	for s, h := range r.recorded {
		if now.Sub(h.since) > 2*window {
			delete(r.recorded, s)
		}
	}
	r.sweepAt = max(minSweep, 2*len(r.recorded))
}

func (v versions) contain(version string) bool {
	for _, used := range v {
		if used == version {
			return true
		}
	}
	return false
}

// AnnotatedEventf implements [events.AnnotatedEventRecorder]. Annotations are dropped, since no
// caller sets any.
func (r *Recorder) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventType, reason, action, format string, args ...any) {
	r.Eventf(regarding, related, eventType, reason, action, format, args...)
}
