// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// maxWaiting is the maximum number of events that are kept until their pods have been read. Without
// a limit, events about pods outside of the watch's selector would be kept forever. The oldest
// events are dropped.
const maxWaiting = 1000

// happened returns the transition for an event. pod is the pod that the event is about.
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

// containerOf returns the container name in a field path like spec.containers{app}. It returns ""
// if the path contains none.
func containerOf(path string) string {
	_, name, found := strings.Cut(path, "{")
	if !found {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}

// eventFeed forwards the events about watched pods. Pods and events are read by separate watches,
// so an event can arrive before its pod.
type eventFeed struct {
	// emit is called with each event whose pod is known, and with the pod.
	emit func(*corev1.Event, *corev1.Pod)

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	waiting []*corev1.Event // oldest first
}

// keep adds a pod to the known pods, and forwards the events that were waiting for the pod. If the
// pod is already known, keep only updates its state.
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

// forget removes a deleted pod from the known pods.
func (f *eventFeed) forget(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, pod.UID)
}

// add forwards an event as soon as its pod is known. If past is true, the event happened before the
// watch began. Such an event is skipped if its pod is already known, because the state that the
// event explains is not reported.
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

// trimEvent is the informer's transform of events. It keeps only the fields that this package
// reads.
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
