// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package wakeup

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// checkInterval is the interval at which the wall clock is checked while any request waits. A timer
// alone would fire late after the machine was suspended or the clock was set forward.
const checkInterval = time.Second

// setBack is the size of a backward jump of the wall clock after which all waiting requests are
// queued at once, because their times were computed from a wrong clock.
const setBack = time.Minute

// priority is the queue priority of due requests. It is higher than the priority 0 of requests
// caused by events, and than the lower priority of requests from the initial list.
const priority = 1

// Wakeups is a source of requests for a controller. It queues each request at the time that
// [Wakeups.Set] has set for the request. Setting a time costs O(log n) for n waiting requests.
type Wakeups[request comparable] struct {
	clock clock.Clock

	mu      sync.Mutex
	entries map[request]*entry[request]
	heap    entries[request]
	queue   workqueue.TypedRateLimitingInterface[request]
	// read is the wall clock's time when it was last checked.
	read time.Time
	// changed holds an element if the time of the earliest waiting request may have changed.
	changed chan struct{}
}

type entry[request comparable] struct {
	request request
	at      time.Time
	index   int
}

// New returns a Wakeups without any waiting requests.
func New[request comparable](c clock.Clock) *Wakeups[request] {
	return &Wakeups[request]{clock: c, entries: map[request]*entry[request]{}, changed: make(chan struct{}, 1)}
}

// Set sets the time at which a request is queued. The zero time cancels the request.
func (w *Wakeups[request]) Set(r request, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, known := w.entries[r]
	switch {
	case at.IsZero() && !known:
		return
	case at.IsZero():
		heap.Remove(&w.heap, e.index)
		delete(w.entries, r)
		return
	case known:
		e.at = at
		heap.Fix(&w.heap, e.index)
	default:
		e = &entry[request]{request: r, at: at}
		w.entries[r] = e
		heap.Push(&w.heap, e)
	}
	if e.index == 0 {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// Enqueue queues requests immediately, ahead of requests queued because of events. If many restarts
// are due at the same time, all of them are therefore started before events about the first of
// these restarts are handled. In contrast to Set with a past time, Enqueue cannot be overridden by
// a concurrent Set for the same request.
func (w *Wakeups[request]) Enqueue(requests ...request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if queue, ok := w.queue.(priorityqueue.PriorityQueue[request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, requests...)
		return
	}
	for _, r := range requests {
		w.queue.Add(r)
	}
}

// due removes and returns the requests whose time has come, or all requests if the clock has been
// set back. wait is the time until the next request is due, or 0 if no request is left.
func (w *Wakeups[request]) due() (requests []request, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Round strips the monotonic clock reading, which stops while the machine is suspended.
	now := w.clock.Now().Round(0)
	all := now.Before(w.read.Add(-setBack))
	w.read = now
	for len(w.heap) > 0 {
		if first := w.heap[0]; !all && first.at.After(now) {
			return requests, first.at.Sub(now)
		}
		e := heap.Pop(&w.heap).(*entry[request])
		delete(w.entries, e.request)
		requests = append(requests, e.request)
	}
	return requests, 0
}

// Start implements [sigs.k8s.io/controller-runtime/pkg/source.TypedSource].
func (w *Wakeups[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	w.mu.Lock()
	w.queue = queue
	w.mu.Unlock()
	go func() {
		for {
			requests, wait := w.due()
			w.Enqueue(requests...)
			var timer <-chan time.Time
			if wait > 0 {
				timer = w.clock.After(min(wait, checkInterval))
			}
			select {
			case <-ctx.Done():
				return
			case <-w.changed:
			case <-timer:
			}
		}
	}()
	return nil
}

// entries is a heap of waiting requests, ordered by the time at which they are queued.
type entries[request comparable] []*entry[request]

func (h entries[request]) Len() int           { return len(h) }
func (h entries[request]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h entries[request]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *entries[request]) Push(x any) {
	e := x.(*entry[request])
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entries[request]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
