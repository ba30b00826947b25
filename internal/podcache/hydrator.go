// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
)

// hydrator makes pods of records. Of one event every index and every handler is
// handed the pod, and the next event of that pod brings it again as the old one:
// so the pods that were made last are kept.
type hydrator struct{ made *lru.Cache }

// keptPods is how many pods that were made are kept: so many that the handlers may
// be behind by some events, and few enough for their 2 KiB each not to matter.
const keptPods = 256

func newHydrator() *hydrator { return &hydrator{lru.New(keptPods)} }

// podOf returns the pod of a record, and anything else as it is.
func (h *hydrator) podOf(object any) any {
	switch o := object.(type) {
	case *record:
		return h.pod(o)
	case cache.DeletedFinalStateUnknown:
		return cache.DeletedFinalStateUnknown{Key: o.Key, Obj: h.podOf(o.Obj)}
	default:
		return object
	}
}

func (h *hydrator) pod(r *record) *corev1.Pod {
	if pod, ok := h.made.Get(r); ok {
		return pod.(*corev1.Pod)
	}
	pod := r.pod()
	h.made.Add(r, pod)
	return pod
}

// podsOf returns the pods of records. They may be all there are, of which none is
// worth to be kept.
func (h *hydrator) podsOf(objects []any) []any {
	pods := make([]any, len(objects))
	for i, object := range objects {
		if r, ok := object.(*record); ok {
			object = r.pod()
		}
		pods[i] = object
	}
	return pods
}

// ofPods lets indexes see pods.
func (h *hydrator) ofPods(indexers cache.Indexers) cache.Indexers {
	of := cache.Indexers{}
	for name, index := range indexers {
		of[name] = func(object any) ([]string, error) { return index(h.podOf(object)) }
	}
	return of
}
