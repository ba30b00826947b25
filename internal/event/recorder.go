// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event records events: none is refused for its length, and two with different
// notes are never merged into one.
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
	// noteLimit is the maximum length in bytes that the API server accepts for a note.
	noteLimit = 1024

	// maxNotes is how many different notes are recorded within a window for one object
	// and reason; one more says that there are others. An error may have another text
	// each time, and users who may edit an object decide how often. The window is longer
	// than client-go waits for the next event of a series, which is at most twelve minutes.
	maxNotes = 20
	window   = 15 * time.Minute

	// moreNote replaces all notes above the limit.
	moreNote = "further events with this reason are not recorded"
)

var seed = maphash.MakeSeed()

// Recorder is an [events.EventRecorder] that passes events on to another one.
//
// It shortens notes to the length that the API server accepts. And it makes client-go
// merge an event into an earlier one, as a series, only if both have the same note.
// client-go compares everything but the note: the corrections of two nodes within
// minutes would become one event about the first node, with a count of two.
type Recorder struct {
	inner  events.EventRecorder
	scheme *runtime.Scheme
	clock  clock.PassiveClock

	mu       sync.Mutex
	recorded map[subject]*history
	// sweepAt is how many subjects there are when the old ones are dropped.
	sweepAt int
}

// subject is what client-go compares events by, except for the version of the object.
type subject struct {
	object                    types.UID
	eventType, reason, action string
}

// history is what was recorded for a subject, in this window and in the one before.
type history struct {
	since            time.Time
	current, earlier versions
}

// versions are the versions of the object in the recorded events, by a hash of the note.
type versions map[uint64]string

// minSweep is how many subjects are kept before the old ones are dropped.
const minSweep = 1000

// NewRecorder returns a recorder that passes events on to another one.
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

// distinguish returns the note to record, and the version of the object to record it
// for. That is the version of the object, unless another note was recorded for it: then
// the version gets a suffix, because that is the only field by which client-go compares
// events and which users do not see. A repeated note gets the same version as before.
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
		ctrl.Log.WithName("events").V(1).Info("Too many different events: not recording one", "uid", s.object, "reason", s.reason, "note", note)
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

// sweep drops the subjects that are too old to matter, now and then.
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

// AnnotatedEventf implements [events.AnnotatedEventRecorder]. It drops the annotations:
// no caller sets any.
func (r *Recorder) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventType, reason, action, format string, args ...any) {
	r.Eventf(regarding, related, eventType, reason, action, format, args...)
}
