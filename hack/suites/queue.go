// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
)

// queue holds the suites that wait for their turn. Early suites are taken first. Of the others, some
// run longest first, so that the last suites of a run end at about the same time. Beside these, the
// shortest is taken first, so that most suites have run if a slow machine has no time for all.
type queue struct {
	// mostLong is the number of suites that run longest first, and long is the number of those that
	// run now.
	mostLong, long int

	mu      sync.Mutex
	waiting []suite
}

// newQueue returns a queue of the suites, which it takes over.
func newQueue(mostLong int, suites []suite) *queue {
	return &queue{mostLong: mostLong, waiting: suites}
}

// next removes a suite and returns it, with a function that the caller must call when the suite has
// ended. next returns false if the queue is empty.
func (q *queue) next() (s suite, ended func(), more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return suite{}, nil, false
	}
	first := 0
	for i := range q.waiting {
		if q.before(&q.waiting[i], &q.waiting[first]) {
			first = i
		}
	}
	s = q.waiting[first]
	q.waiting = slices.Delete(q.waiting, first, first+1)
	if s.early || q.long == q.mostLong {
		return s, func() {}, true
	}
	q.long++
	return s, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.long--
	}, true
}

// empty reports whether no suite is waiting.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0
}

// before reports whether the waiting suite a is taken before the waiting suite b.
func (q *queue) before(a, b *suite) bool {
	switch {
	case a.early != b.early:
		return a.early
	case q.long < q.mostLong:
		return a.seconds > b.seconds
	}
	return a.seconds < b.seconds
}
