// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
)

// sink records the notes that client-go would receive, keyed by the fields that client-go compares.
type sink struct{ notes map[string][]string }

func (s *sink) Eventf(regarding, _ runtime.Object, eventType, reason, action, format string, args ...any) {
	ref := regarding.(*corev1.ObjectReference)
	key := fmt.Sprint(ref.UID, ref.ResourceVersion, eventType, reason, action)
	s.notes[key] = append(s.notes[key], fmt.Sprintf(format, args...))
}

// merged reports whether client-go would merge events with different notes.
func (s *sink) merged() bool {
	for _, notes := range s.notes {
		for _, note := range notes {
			if note != notes[0] {
				return true
			}
		}
	}
	return false
}

func newTest() (*Recorder, *sink, *clocktesting.FakePassiveClock) {
	s := &sink{map[string][]string{}}
	c := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return NewRecorder(s, clientgoscheme.Scheme, c), s, c
}

func object(uid, version string) *corev1.Node {
	node := &corev1.Node{}
	node.Name, node.UID, node.ResourceVersion = "node-"+uid, types.UID(uid), version
	return node
}

func TestDifferentNotesAreDifferentEvents(t *testing.T) {
	r, s, c := newTest()
	o := object("a", "7")
	r.Eventf(o, nil, "Normal", "DriftCorrected", "Update", "put back on %s", "node-1")
	c.SetTime(c.Now().Add(3 * time.Second))
	r.Eventf(o, nil, "Normal", "DriftCorrected", "Update", "put back on %s", "node-2")
	// The first note is repeated, both for the same version of the object and for a later version.
	r.Eventf(o, nil, "Normal", "DriftCorrected", "Update", "put back on %s", "node-1")
	r.Eventf(object("a", "9"), nil, "Normal", "DriftCorrected", "Update", "put back on %s", "node-1")
	if s.merged() {
		t.Error("different notes are merged into one")
	}
	want := map[string][]string{
		"a7NormalDriftCorrectedUpdate":   {"put back on node-1", "put back on node-1", "put back on node-1"},
		"a7.2NormalDriftCorrectedUpdate": {"put back on node-2"},
	}
	if diff := cmp.Diff(want, s.notes); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestEndlessNotes checks that an error whose message changes every time is recorded up to a limit,
// followed by a single note for all further events, and that memory use stays bounded.
func TestEndlessNotes(t *testing.T) {
	r, s, c := newTest()
	for i := range 1000 {
		r.Eventf(object("a", "7"), nil, "Warning", "ReconcileFailed", "Reconcile", "error %d", i)
	}
	if s.merged() {
		t.Error("different notes are merged into one")
	}
	if got := len(s.notes); got != maxNotes+1 {
		t.Errorf("%d events for a thousand notes, want %d", got, maxNotes+1)
	}
	c.SetTime(c.Now().Add(window - time.Second))
	r.Eventf(object("a", "8"), nil, "Warning", "ReconcileFailed", "Reconcile", "error %d", 7)
	c.SetTime(c.Now().Add(2 * time.Second))
	r.Eventf(object("a", "8"), nil, "Warning", "ReconcileFailed", "Reconcile", "error %d", 2001)
	r.Eventf(object("a", "7"), nil, "Warning", "ReconcileFailed", "Reconcile", "error %d", 2000)
	if s.merged() {
		t.Error("after a while a new note is merged into an old one")
	}
	for i := range 10 * minSweep {
		c.SetTime(c.Now().Add(time.Second))
		r.Eventf(object(fmt.Sprint("b", i), "7"), nil, "Warning", "ReconcileFailed", "Reconcile", "error")
	}
	if got := len(r.recorded); got > 3*minSweep {
		t.Errorf("%[2]d of %[1]d objects are kept", 10*minSweep, got)
	}
}
