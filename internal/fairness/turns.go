// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"container/heap"
	"sync"
)

// turns determines the order in which workers get reconcile requests. Namespaces take turns in
// rounds, with a single request each per round. Within a round, the namespace with the
// highest-priority request comes first. Within a namespace, requests are ordered by priority, then
// by age. If a namespace has only one request, this request waits for at most two requests of each
// other namespace, regardless of the number and priorities of the requests there.
//
// In addition, a namespace gets another worker only while it uses fewer workers than are free,
// since all of its requests may be slow. Of 64 workers, the first namespace may use 32 and a second
// namespace another 16; a sixth namespace still gets one.
//
// turns implements [k8s.io/client-go/util/workqueue.Queue].
type turns[R comparable] struct {
	namespaceOf func(R) string
	workers     int

	mu sync.Mutex
	// spaces maps each namespace to its state. It holds the namespaces that have waiting or running
	// requests, or have had their turn in this round.
	spaces map[string]*space[R]
	// order is a heap of the namespaces with waiting requests. The first namespace has the next
	// turn.
	order   spaces[R]
	waiting map[R]*entry[R]
	// running holds the priority of each request that a worker is processing.
	running map[R]int
	// wanted holds the priority of each request that is about to be passed to Push or Touch.
	wanted map[R]int
	// round is the number of the round in which a namespace last had its turn. pushed counts the
	// calls of Push. The count at the time of a call orders requests by age.
	round, pushed uint64
}

// space is the scheduling state of a namespace.
type space[R comparable] struct {
	// round is the earliest round in which the namespace can have its next turn.
	round   uint64
	waiting entries[R]
	running int
	index   int
}

// entry is a waiting request, as an element of the heap of its namespace's waiting requests.
type entry[R comparable] struct {
	request  R
	priority int
	number   uint64
	index    int
}

func newTurns[R comparable](workers int, namespaceOf func(R) string) *turns[R] {
	return &turns[R]{
		namespaceOf: namespaceOf, workers: workers,
		spaces: map[string]*space[R]{}, waiting: map[R]*entry[R]{}, running: map[R]int{}, wanted: map[R]int{},
	}
}

// want sets the priority of a request that is about to be passed to Push or Touch. If want is
// called several times for the request, the highest priority wins.
func (t *turns[R]) want(r R, priority int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wanted, ok := t.wanted[r]; !ok || priority > wanted {
		t.wanted[r] = priority
	}
}

// Push adds a request with the priority that the method want has set.
func (t *turns[R]) Push(r R) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pushed++
	e := &entry[R]{request: r, priority: t.wanted[r], number: t.pushed}
	delete(t.wanted, r)
	t.waiting[r] = e
	s := t.space(r)
	heap.Push(&s.waiting, e)
	if len(s.waiting) > 1 {
		heap.Fix(&t.order, s.index)
		return
	}
	// A namespace cannot accumulate turns from rounds in which it had no requests.
	s.round = max(s.round, t.round)
	heap.Push(&t.order, s)
}

// Touch raises the priority of a waiting request to the priority that the method want has set.
func (t *turns[R]) Touch(r R) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted, ok := t.wanted[r]
	delete(t.wanted, r)
	e := t.waiting[r]
	if !ok || e == nil || wanted <= e.priority {
		return
	}
	s := t.space(r)
	e.priority = wanted
	heap.Fix(&s.waiting, e.index)
	heap.Fix(&t.order, s.index)
}

// Len returns the number of waiting requests. It returns 0 if none of their namespaces may use
// another worker now.
func (t *turns[R]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.order {
		if t.mayRun(s) {
			return len(t.waiting)
		}
	}
	return 0
}

// Pop removes and returns the next request. It must not be called while Len returns 0.
func (t *turns[R]) Pop() R {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Skip namespaces that already use too many workers, but let them keep their turns.
	var passed []*space[R]
	for len(t.order) > 1 && !t.mayRun(t.order[0]) {
		passed = append(passed, heap.Pop(&t.order).(*space[R]))
	}
	s := t.order[0]
	e := heap.Pop(&s.waiting).(*entry[R])
	delete(t.waiting, e.request)
	t.running[e.request] = e.priority
	s.running++
	before := t.round
	t.round = max(t.round, s.round)
	s.round = t.round + 1
	if len(s.waiting) > 0 {
		heap.Fix(&t.order, 0)
	} else {
		heap.Pop(&t.order)
	}
	for _, p := range passed {
		heap.Push(&t.order, p)
	}
	if len(t.order) == 0 {
		t.round++ // All waiting requests were handed out, which ends the round.
	}
	if t.round > before {
		for namespace := range t.spaces {
			t.tidy(namespace)
		}
	}
	return e.request
}

// priority returns the priority of a request that a worker is processing.
func (t *turns[R]) priority(r R) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[r]
}

// end records that a worker has finished a request.
func (t *turns[R]) end(r R) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.running[r]; !ok {
		return
	}
	delete(t.running, r)
	namespace := t.namespaceOf(r)
	t.spaces[namespace].running--
	t.tidy(namespace)
}

// mayRun reports whether a namespace may use another worker: it must use fewer workers than are
// free.
func (t *turns[R]) mayRun(s *space[R]) bool { return s.running < t.workers-len(t.running) }

// space returns the state of a request's namespace. It creates the state if necessary.
func (t *turns[R]) space(r R) *space[R] {
	namespace := t.namespaceOf(r)
	if t.spaces[namespace] == nil {
		t.spaces[namespace] = &space[R]{}
	}
	return t.spaces[namespace]
}

// tidy drops the state of a namespace that has no waiting or running requests and has not had its
// turn in this round.
func (t *turns[R]) tidy(namespace string) {
	if s := t.spaces[namespace]; len(s.waiting) == 0 && s.running == 0 && s.round <= t.round {
		delete(t.spaces, namespace)
	}
}

// comesBefore reports whether e must be processed before other. Both must belong to the same
// namespace, or to namespaces with a turn in the same round.
func (e *entry[R]) comesBefore(other *entry[R]) bool {
	return e.priority > other.priority || e.priority == other.priority && e.number < other.number
}

// entries is a heap of a namespace's waiting requests, with the most urgent request first.
type entries[R comparable] []*entry[R]

func (h entries[R]) Len() int           { return len(h) }
func (h entries[R]) Less(i, j int) bool { return h[i].comesBefore(h[j]) }
func (h entries[R]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *entries[R]) Push(x any) {
	e := x.(*entry[R])
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *entries[R]) Pop() any { return cutLast(h) }

// spaces is a heap of the namespaces with waiting requests, ordered by round, then by the most
// urgent request of each namespace.
type spaces[R comparable] []*space[R]

func (h spaces[R]) Len() int { return len(h) }
func (h spaces[R]) Less(i, j int) bool {
	return h[i].round < h[j].round || h[i].round == h[j].round && h[i].waiting[0].comesBefore(h[j].waiting[0])
}
func (h spaces[R]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *spaces[R]) Push(x any) {
	s := x.(*space[R])
	s.index = len(*h)
	*h = append(*h, s)
}

// Pop implements [heap.Interface].
func (h *spaces[R]) Pop() any { return cutLast(h) }

func cutLast[S ~[]E, E any](s *S) E {
	last := len(*s) - 1
	cut := (*s)[last]
	clear((*s)[last:])
	*s = (*s)[:last]
	return cut
}
