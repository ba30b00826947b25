// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// alarmCheck is how often the wall clock is looked at while anything is set. A
// timer alone would be late by as long as a machine was suspended, or the clock
// was set forward.
const alarmCheck = time.Second

// alarm queues each key at the time that it is set to, by the wall clock. Any
// number of keys costs nothing while they wait; setting one is O(log n).
//
// A delay in the controller's queue would be a timer, see [alarmCheck], and
// could not be taken back when a schedule is edited.
type alarm struct {
	clock clock.Clock

	mu      sync.Mutex
	entries map[types.NamespacedName]*alarmEntry
	heap    alarmHeap
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	// changed is told when the first entry is another one.
	changed chan struct{}
}

type alarmEntry struct {
	key   types.NamespacedName
	at    time.Time
	index int
}

func newAlarm(c clock.Clock) *alarm {
	return &alarm{clock: c, entries: map[types.NamespacedName]*alarmEntry{}, changed: make(chan struct{}, 1)}
}

// set sets the alarm of a key; the zero time turns it off.
func (a *alarm) set(key types.NamespacedName, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry, known := a.entries[key]
	switch {
	case at.IsZero() && !known:
		return
	case at.IsZero():
		heap.Remove(&a.heap, entry.index)
		delete(a.entries, key)
		return
	case known:
		entry.at = at
		heap.Fix(&a.heap, entry.index)
	default:
		entry = &alarmEntry{key: key, at: at}
		a.entries[key] = entry
		heap.Push(&a.heap, entry)
	}
	if entry.index == 0 {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
}

// ring queues keys at once. Unlike an alarm that is set to now, this cannot be
// lost to somebody who is just setting the alarm of the same key.
func (a *alarm) ring(keys ...types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		a.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// due takes the keys whose time has come, and returns how long to wait for the
// next; 0 if there is none.
func (a *alarm) due() (keys []types.NamespacedName, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Without its monotonic part, which stands still while a machine is suspended.
	now := a.clock.Now().Round(0)
	for len(a.heap) > 0 {
		if first := a.heap[0]; first.at.After(now) {
			return keys, first.at.Sub(now)
		}
		entry := heap.Pop(&a.heap).(*alarmEntry)
		delete(a.entries, entry.key)
		keys = append(keys, entry.key)
	}
	return keys, 0
}

// Start implements [sigs.k8s.io/controller-runtime/pkg/source.Source].
func (a *alarm) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	a.mu.Lock()
	a.queue = queue
	a.mu.Unlock()
	go func() {
		for {
			keys, wait := a.due()
			a.ring(keys...)
			var timer <-chan time.Time
			if wait > 0 {
				timer = a.clock.After(min(wait, alarmCheck))
			}
			select {
			case <-ctx.Done():
				return
			case <-a.changed:
			case <-timer:
			}
		}
	}()
	return nil
}

type alarmHeap []*alarmEntry

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	entry := x.(*alarmEntry)
	entry.index = len(*h)
	*h = append(*h, entry)
}

func (h *alarmHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
