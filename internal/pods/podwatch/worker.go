// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// maxRetries is the number of retries of a pod's key before the pod's transitions are dropped.
const maxRetries = 3

// Bounds of the delays between retries. The delays are short because a user waits for the output,
// but three retries must take longer than a brief failure.
const (
	firstDelay = 200 * time.Millisecond
	maxDelay   = 5 * time.Second
)

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, maxDelay))
}

// worker takes pod keys from a queue and reports the pods' backlogs.
type worker struct {
	queue    workqueue.TypedRateLimitingInterface[string]
	backlogs *backlogs
	report   func(Transition) error
	dropped  func(key string, transitions int, err error)
}

// run reports backlogs until the queue has been shut down and is empty.
func (w *worker) run() {
	for w.processNext() {
		continue
	}
}

func (w *worker) processNext() bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	err := w.backlogs.report(key, w.report)
	if err == nil {
		w.queue.Forget(key)
		return true
	}
	if w.queue.NumRequeues(key) < maxRetries {
		w.queue.AddRateLimited(key)
		return true
	}
	w.queue.Forget(key)
	w.dropped(key, w.backlogs.drop(key), err)
	return true
}
