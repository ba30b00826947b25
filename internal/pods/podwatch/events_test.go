// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// eventSource is a fake API server that serves events.
type eventSource struct {
	*source
	// there lists the events that exist before the watch begins.
	there []*corev1.Event
	// refusal, if not nil, is the error response to all requests, until the test changes it.
	refusal error
}

// eventList converts a list from client-go's fake source to an EventList, which a real client
// returns.
func eventList(list *corev1.List) runtime.Object {
	events := &corev1.EventList{ListMeta: list.ListMeta}
	for _, item := range list.Items {
		events.Items = append(events.Items, *item.Object.(*corev1.Event))
	}
	return events
}

// event returns an event about the container "app" of a pod, at the given second after the epoch.
func event(name string, about *corev1.Pod, second int, reason string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{
			Kind: "Pod", Namespace: about.Namespace, Name: about.Name, UID: about.UID, FieldPath: "spec.containers{app}",
		},
		Type: corev1.EventTypeNormal, Reason: reason, LastTimestamp: metav1.NewTime(epoch.Add(time.Duration(second) * time.Second)),
	}
}

func TestWatchEvents(t *testing.T) {
	there := named("web")
	for _, tt := range []struct {
		history bool
		first   []string
	}{
		{false, []string{"began with 1, 1 not ready", "web: ? Found"}},
		{true, []string{"began with 1, 1 not ready", "web: 0 Created", "web: 1 Event app Pulling", "web: ? Phase >Pending"}},
	} {
		t.Run(fmt.Sprint("history ", tt.history), func(t *testing.T) {
			w := &Watcher{History: tt.history, OnNoEvents: func(err error) { t.Errorf("no events: %v", err) }}
			w.Events = &eventSource{there: []*corev1.Event{event("pulling", there, 1, "Pulling")}}
			watching(t, w, []*corev1.Pod{there}, func(s *source, got *collector, _ chan error) {
				lines := got.take()
				slices.Sort(lines)
				if diff := cmp.Diff(tt.first, lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				started := event("started", there, 2, "Started")
				s.events.Add(started)
				settle()
				want(t, got, "web: 2 Event app Started")
				// The same event occurs a second time.
				started.Count, started.LastTimestamp = 2, metav1.NewTime(epoch.Add(3*time.Second))
				s.events.Modify(started)
				settle()
				want(t, got, "web: 3 Event app Started")
				// If an event arrives before its pod, it is reported after the pod.
				db := named("db")
				db.UID = "db"
				s.events.Add(event("db", db, 4, "Scheduled"))
				settle()
				want(t, got)
				s.Add(db)
				settle()
				want(t, got, "db: 0 Created", "db: ? Phase >Pending", "db: 4 Event app Scheduled")
				// After a lost connection, known events are not reported again.
				s.events.ResetWatch()
				time.Sleep(time.Minute) // sleep: in a bubble
				synctest.Wait()
				want(t, got)
				// Events about a deleted pod are not reported.
				s.Delete(db)
				settle()
				want(t, got, "db: ? Deleted")
				s.events.Add(event("late", db, 5, "Killing"))
				settle()
				want(t, got)
			})
		})
	}
}

// TestWatchEventsThatAreListedLate checks that a pod that is created before the events have been
// listed keeps its events, in the order in which they were written, while the earlier events of a
// pod that was found are not reported.
func TestWatchEventsThatAreListedLate(t *testing.T) {
	there := named("web")
	w := &Watcher{OnNoEvents: func(err error) { t.Errorf("no events: %v", err) }}
	w.Events = &eventSource{there: []*corev1.Event{event("pulling", there, 1, "Pulling")}, refusal: apierrors.NewServiceUnavailable("busy")}
	watching(t, w, []*corev1.Pod{there}, func(s *source, got *collector, _ chan error) {
		got.take()
		db := named("db")
		db.UID = "db"
		s.Add(db)
		s.events.Add(event("z", db, 4, "Scheduled"))
		for i, reason := range []string{"Pulling", "Pulled", "Created", "Started"} {
			s.events.Add(event(string('y'-rune(i)), db, 5, reason))
		}
		settle()
		want(t, got, "db: 0 Created", "db: ? Phase >Pending")
		s.events.fail(nil)
		time.Sleep(time.Minute) // sleep: in a bubble
		synctest.Wait()
		want(t, got, "db: 4 Event app Scheduled", "db: 5 Event app Pulling", "db: 5 Event app Pulled", "db: 5 Event app Created", "db: 5 Event app Started")
	})
}

// TestWatchWithoutEvents checks that pods are watched even if the client has no right to read
// events.
func TestWatchWithoutEvents(t *testing.T) {
	refusals := 0
	w := &Watcher{OnNoEvents: func(error) { refusals++ }}
	w.Events = &eventSource{refusal: apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))}
	watching(t, w, nil, func(s *source, got *collector, _ chan error) {
		want(t, got, "began with 0, 0 not ready")
		s.Add(named("db"))
		time.Sleep(time.Minute) // sleep: in a bubble
		synctest.Wait()
		want(t, got, "db: 0 Created", "db: ? Phase >Pending")
		if refusals != 1 {
			t.Errorf("%d reports that events cannot be read, want 1", refusals)
		}
	})
}

// TestEventsThatWaitAreBounded checks that the number of events that wait for their pods is
// bounded.
func TestEventsThatWaitAreBounded(t *testing.T) {
	var emitted []string
	feed := newEventFeed()
	feed.emit = func(e *corev1.Event, _ *corev1.Pod) { emitted = append(emitted, e.Name) }
	pod := named("db")
	for i := range maxWaiting + 2 {
		feed.add(event(fmt.Sprint(i), pod, i, "Pulling"), false)
	}
	feed.keep(pod, false)
	if len(emitted) != maxWaiting || emitted[0] != "2" || len(feed.waiting) != 0 {
		t.Errorf("%d events are reported, the first is %s, and %d wait", len(emitted), emitted[0], len(feed.waiting))
	}
	feed.keep(pod, false)
	if len(emitted) != maxWaiting {
		t.Error("a change of the pod repeats its events")
	}
}
