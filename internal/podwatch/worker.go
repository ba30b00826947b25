// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// tries is how often a key is tried again before it is dropped.
const tries = 3

// Between two tries: a person waits for the lines, and three tries are to be
// more than a moment.
const (
	firstDelay = 200 * time.Millisecond
	mostDelay  = 5 * time.Second
)

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, mostDelay))
}

// worker tells the stories of the pods whose keys it takes from a queue.
type worker struct {
	queue   workqueue.TypedRateLimitingInterface[string]
	store   cache.Store
	stories *stories
	tell    func(Transition) error
	dropped func(key string, transitions int, err error)
}

// run works until the queue is shut down and empty.
func (w *worker) run() {
	for w.next() {
		continue
	}
}

func (w *worker) next() bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	err := w.stories.tell(key, w.tell)
	if err == nil {
		w.queue.Forget(key)
		return true
	}
	if w.queue.NumRequeues(key) < tries {
		w.queue.AddRateLimited(key)
		return true
	}
	w.queue.Forget(key)
	// What the pod is by now, in the store, is where its story goes on.
	var pod *corev1.Pod
	if o, exists, storeErr := w.store.GetByKey(key); storeErr == nil && exists {
		pod = o.(*corev1.Pod)
	}
	w.dropped(key, w.stories.drop(key, pod), err)
	return true
}
