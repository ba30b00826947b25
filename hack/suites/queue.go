// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
)

// queue holds the suites that wait for their turn. The longest suite is taken first, so that the last
// suites of a run end at about the same time. But while the greatest number of busy suites run,
// others are taken first, so that tests do not wait for a processor while it is idle at other times.
type queue struct {
	// mostBusy is the number of busy suites that may run while other suites are waiting. busy is
	// the number of busy suites that run.
	mostBusy, busy int

	mu      sync.Mutex
	waiting []suite
}

// newQueue returns a queue of the suites, which it takes over.
func newQueue(mostBusy int, suites []suite) *queue {
	return &queue{mostBusy: mostBusy, waiting: suites}
}

// next removes a suite and returns it. The caller must call ended when the suite has ended. next
// returns false if the queue is empty.
func (q *queue) next() (suite, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return suite{}, false
	}
	first := 0
	for i := range q.waiting {
		if q.before(&q.waiting[i], &q.waiting[first]) {
			first = i
		}
	}
	s := q.waiting[first]
	q.waiting = slices.Delete(q.waiting, first, first+1)
	if s.busy {
		q.busy++
	}
	return s, true
}

// empty reports whether no suite is waiting.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0
}

// before reports whether the waiting suite a is taken before the waiting suite b.
func (q *queue) before(a, b *suite) bool {
	if a.busy != b.busy && q.busy >= q.mostBusy {
		return b.busy
	}
	return a.seconds > b.seconds
}

// ended tells the queue that a suite from next has ended.
func (q *queue) ended(s *suite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.busy {
		q.busy--
	}
}
