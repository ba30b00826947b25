// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/pods"
	"tidekeeper.dev/tidekeeper/internal/podtimeline"
)

// maxWaiting is the maximum number of events that wait for their pod to be read. Those of
// pods that do not match the watch's selector keep waiting, so the oldest are forgotten.
const maxWaiting = 1000

// happened returns the transition that an event is. The pod is the one that it is about.
func happened(e *corev1.Event, pod *corev1.Pod) Transition {
	t := Transition{
		Kind: Event, Name: containerOf(e.InvolvedObject.FieldPath), Type: e.Type, Reason: e.Reason, Message: e.Message,
		Time: pods.LastSeen(e).Truncate(podtimeline.Resolution),
	}
	if n := pods.Times(e); n > 1 {
		t.Count = n
	}
	return withPod(t, pod)
}

// containerOf returns the name in a path like spec.containers{app}, "" if it has none.
func containerOf(path string) string {
	_, name, found := strings.Cut(path, "{")
	if !found {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}

// eventFeed hands on the events about the pods that are watched. An event can be read before
// its pod, because they come by two watches.
type eventFeed struct {
	// emit is called with each event about a pod that is known.
	emit func(*corev1.Event, *corev1.Pod)

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	waiting []*corev1.Event // oldest first
}

// keep makes a pod known, or its new state.
func (f *eventFeed) keep(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.pods[pod.UID]
	f.pods[pod.UID] = pod
	if known {
		return
	}
	rest := f.waiting[:0]
	for _, e := range f.waiting {
		if e.InvolvedObject.UID == pod.UID {
			f.emit(e, pod)
		} else {
			rest = append(rest, e)
		}
	}
	clear(f.waiting[len(rest):])
	f.waiting = rest
}

// forget makes a pod unknown that is gone.
func (f *eventFeed) forget(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, pod.UID)
}

// add hands an event on as soon as its pod is known. One that happened before the watch
// began is skipped if its pod is known by now: how that pod got to its state is history.
func (f *eventFeed) add(e *corev1.Event, past bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pod, known := f.pods[e.InvolvedObject.UID]
	switch {
	case known && !past:
		f.emit(e, pod)
	case !known:
		if len(f.waiting) == maxWaiting {
			f.waiting[0] = nil
			f.waiting = f.waiting[1:]
		}
		f.waiting = append(f.waiting, e)
	}
}

// trimEvent keeps the fields that this package needs.
func trimEvent(o any) (any, error) {
	e, ok := o.(*corev1.Event)
	if !ok {
		return o, nil
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp,
		},
		InvolvedObject: corev1.ObjectReference{Name: e.InvolvedObject.Name, UID: e.InvolvedObject.UID, FieldPath: e.InvolvedObject.FieldPath},
		Type:           e.Type, Reason: e.Reason, Message: e.Message,
		Count: e.Count, Series: e.Series, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
	}, nil
}
