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

// checkInterval is the interval at which the wall clock is read while any time is set. A timer
// alone would be late by the time for which a machine was suspended, or by which the clock was
// set forward.
const checkInterval = time.Second

// setBack is the jump backwards of the wall clock after which all requests are queued, since
// their times were computed from a wrong clock.
const setBack = time.Minute

// priority of due requests; events have 0, and events of the initial list less.
const priority = 1

// Wakeups is a source of requests for a controller: each request is queued at the time set for
// it. Setting a time costs O(log n).
type Wakeups[request comparable] struct {
	clock clock.Clock

	mu      sync.Mutex
	entries map[request]*entry[request]
	heap    entries[request]
	queue   workqueue.TypedRateLimitingInterface[request]
	// read is the time at which the wall clock was last read.
	read time.Time
	// changed has an element when another entry has become the first.
	changed chan struct{}
}

type entry[request comparable] struct {
	request request
	at      time.Time
	index   int
}

// New returns a source without any times.
func New[request comparable](c clock.Clock) *Wakeups[request] {
	return &Wakeups[request]{clock: c, entries: map[request]*entry[request]{}, changed: make(chan struct{}, 1)}
}

// Set sets the time at which a request is queued. The zero time means never.
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

// Enqueue queues requests now, ahead of requests queued by events: of many ticks that are due
// at once, all are sent before the end of the first restart is recorded. Unlike Set with a past
// time, Enqueue cannot be overwritten by a concurrent Set for the same request.
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

// due removes and returns the requests whose time has come, and the time to wait for the next
// request; 0 if there is none. If the clock has been set back, it returns all requests.
func (w *Wakeups[request]) due() (requests []request, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Round removes the monotonic reading, which stands still while a machine is suspended.
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

// entries is a heap by time.
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
