// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
)

// restorer restores Pods from records. It caches the most recent Pods, because each of them is used
// several times: by every index and event handler, and as the old object of the pod's next event.
type restorer struct{ recent *lru.Cache }

// recentPods is the number of Pods that a restorer caches. It is large enough for event handlers
// that are some events behind. At 2 KiB for each Pod, the cache takes little memory.
const recentPods = 256

func newRestorer() *restorer { return &restorer{lru.New(recentPods)} }

// object returns the Pod of a record, and any other object unchanged.
func (r *restorer) object(object any) any {
	switch o := object.(type) {
	case *record:
		return r.pod(o)
	case cache.DeletedFinalStateUnknown:
		return cache.DeletedFinalStateUnknown{Key: o.Key, Obj: r.object(o.Obj)}
	default:
		return object
	}
}

func (r *restorer) pod(from *record) *corev1.Pod {
	if pod, ok := r.recent.Get(from); ok {
		return pod.(*corev1.Pod)
	}
	pod := from.pod()
	r.recent.Add(from, pod)
	return pod
}

// objects returns the Pods of the given records. It does not cache the Pods, because there may be a
// record for every pod of the cluster.
func (r *restorer) objects(records []any) []any {
	pods := make([]any, len(records))
	for i, object := range records {
		if record, ok := object.(*record); ok {
			object = record.pod()
		}
		pods[i] = object
	}
	return pods
}

// indexers converts indexers of Pods to indexers of records.
func (r *restorer) indexers(ofPods cache.Indexers) cache.Indexers {
	ofRecords := cache.Indexers{}
	for name, index := range ofPods {
		ofRecords[name] = func(object any) ([]string, error) { return index(r.object(object)) }
	}
	return ofRecords
}
