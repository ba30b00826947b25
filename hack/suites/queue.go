// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"
)

// queue holds the suites that are ready to run. The longest suite is taken first, so that the last
// suites of a run end at about the same time. But while the greatest number of busy suites run,
// others are taken first, so that tests do not wait for a processor while it is idle at other times.
// Suites may be added while others run. Until the last one has been added, a single suite runs,
// because the programs of the others are being compiled: compilers would leave no processor to more
// suites, whose processes would then repeat what has timed out.
type queue struct {
	// mostBusy is the number of busy suites that may run while other suites are waiting. busy is
	// the number of busy suites that run, and running that of all suites that run.
	mostBusy, busy, running int

	mu      sync.Mutex
	changed *sync.Cond
	waiting []suite
	// begun is true after all suites without needs have been added. closed is true when no more
	// suites will be added.
	begun, closed bool
}

func newQueue(mostBusy int) *queue {
	q := &queue{mostBusy: mostBusy}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add adds a suite that is ready to run.
func (q *queue) add(s suite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, s)
	q.changed.Broadcast()
}

// begin allows next to return suites. It is called after all suites without needs have been added,
// so that the first suite is chosen among all of them.
func (q *queue) begin() { q.set(&q.begun) }

// close declares that no more suites will be added.
func (q *queue) close() { q.set(&q.closed) }

func (q *queue) set(flag *bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*flag = true
	q.changed.Broadcast()
}

// next waits until a suite is ready, then removes a ready suite and returns it. The caller must call
// ended when the suite has ended. next returns false once the queue is closed and empty.
func (q *queue) next() (suite, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && (!q.begun || len(q.waiting) == 0 || q.running > 0) {
		q.changed.Wait()
	}
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
	q.running++
	if s.busy {
		q.busy++
	}
	return s, true
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
	q.running--
	if s.busy {
		q.busy--
	}
	q.changed.Broadcast()
}
