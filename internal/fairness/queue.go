// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// Queue is the work queue of a controller. It hands out requests in the order of [turns]. Otherwise
// it works like client-go's queues: a request is in the queue at most once, is processed by at most
// one worker at a time, and can be added with a delay or a rate limit.
//
// Queue implements [priorityqueue.PriorityQueue].
type Queue[R comparable] struct {
	workqueue.TypedRateLimitingInterface[R]
	turns *turns[R]
}

// newQueue returns a queue for the given number of workers.
func newQueue[R comparable](name string, workers int, limiter workqueue.TypedRateLimiter[R], namespaceOf func(R) string) *Queue[R] {
	t := newTurns(workers, namespaceOf)
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[R]{Name: name, Queue: t})
	delayed := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[R]{Name: name, Queue: ordered})
	return &Queue[R]{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[R]{Name: name, DelayingQueue: delayed}), t}
}

// AddWithOpts implements [priorityqueue.PriorityQueue].
func (q *Queue[R]) AddWithOpts(o priorityqueue.AddOpts, requests ...R) {
	for _, r := range requests {
		q.turns.want(r, ptr.Deref(o.Priority, 0))
		switch {
		case o.RateLimited:
			q.TypedRateLimitingInterface.AddRateLimited(r)
		case o.After > 0:
			q.TypedRateLimitingInterface.AddAfter(r, o.After)
		default:
			q.TypedRateLimitingInterface.Add(r)
		}
	}
}

// Add implements [workqueue.TypedInterface].
func (q *Queue[R]) Add(r R) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

// AddAfter implements [workqueue.TypedDelayingInterface].
func (q *Queue[R]) AddAfter(r R, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *Queue[R]) AddRateLimited(r R) { q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r) }

// Get implements [workqueue.TypedInterface].
func (q *Queue[R]) Get() (r R, shutdown bool) {
	r, _, shutdown = q.GetWithPriority()
	return r, shutdown
}

// GetWithPriority implements [priorityqueue.PriorityQueue]. After a shutdown it returns no more
// requests, so that the next leader processes the waiting requests.
func (q *Queue[R]) GetWithPriority() (r R, priority int, shutdown bool) {
	if r, shutdown = q.TypedRateLimitingInterface.Get(); shutdown {
		return r, 0, true
	}
	if q.ShuttingDown() {
		q.Done(r)
		return *new(R), 0, true
	}
	return r, q.turns.priority(r), false
}

// Done implements [workqueue.TypedInterface]. It may end the wait of another request, whose
// namespace used too many workers. Done need not wake up a worker for that request, because the
// worker that called Done then calls Get.
func (q *Queue[R]) Done(r R) {
	// Call turns.end before the inner Done, which pushes the request again if it was added during
	// processing.
	q.turns.end(r)
	q.TypedRateLimitingInterface.Done(r)
}
