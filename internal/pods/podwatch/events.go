// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

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
	pods    map[types.UID]knownPod
	waiting []*corev1.Event // oldest first
	initial []*corev1.Event // until the initial list is complete
}

// knownPod is a watched pod in its latest state.
type knownPod struct {
	*corev1.Pod
	// found is true if the pod was reported as [Found], without its earlier transitions.
	found bool
}

func newEventFeed() *eventFeed { return &eventFeed{pods: map[types.UID]knownPod{}} }

// keep adds a pod to the known pods, and forwards the events that were waiting for the pod. If the
// pod is already known, keep only updates its state. found is true if the pod is reported as
// [Found].
func (f *eventFeed) keep(pod *corev1.Pod, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if earlier, known := f.pods[pod.UID]; known {
		f.pods[pod.UID] = knownPod{pod, earlier.found}
		return
	}
	f.pods[pod.UID] = knownPod{pod, found}
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

// add forwards an event as soon as its pod is known. initial is true for the events of the watch's
// initial list, which come in no order; they are kept until the list is complete.
func (f *eventFeed) add(e *corev1.Event, initial bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if initial {
		f.initial = append(f.initial, e)
		return
	}
	f.forwardInitial()
	f.forward(e)
}

// listed forwards the events of the initial list once it is complete.
func (f *eventFeed) listed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forwardInitial()
}

// forwardInitial forwards the events of the initial list in the order in which they were written.
// It skips events about pods that were reported as [Found], because the states that the events
// explain are not reported. The watch of events begins after that of the pods, so there can also be
// events about pods that were created in between.
func (f *eventFeed) forwardInitial() {
	slices.SortStableFunc(f.initial, func(a, b *corev1.Event) int {
		order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
		if err != nil {
			return 0 // an API server whose resource versions are not numbers
		}
		return order
	})
	for _, e := range f.initial {
		if !f.pods[e.InvolvedObject.UID].found {
			f.forward(e)
		}
	}
	f.initial = nil
}

// forward emits an event, or lets it wait until its pod is known.
func (f *eventFeed) forward(e *corev1.Event) {
	if pod, known := f.pods[e.InvolvedObject.UID]; known {
		f.emit(e, pod.Pod)
		return
	}
	if len(f.waiting) == maxWaiting {
		f.waiting[0] = nil
		f.waiting = f.waiting[1:]
	}
	f.waiting = append(f.waiting, e)
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
