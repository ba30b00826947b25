// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// queue has the suites that can run. Of those that are there the longest is next, so that the last suites
// of a run end at about the same time. Suites join it while others run.
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	waiting []suite
	// alone are the suites that run after all others, in the order in which they joined.
	alone []suite
	// begun: the suites that need nothing have joined. closed: no suite will join any more.
	begun, closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add lets a suite join.
func (q *queue) add(s suite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.alone {
		q.alone = append(q.alone, s)
		return
	}
	q.waiting = append(q.waiting, s)
	q.changed.Broadcast()
}

// begin hands out the first suites: all that could join at once are there.
func (q *queue) begin() { q.set(&q.begun) }

// close ends the wait for more suites.
func (q *queue) close() { q.set(&q.closed) }

func (q *queue) set(flag *bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*flag = true
	q.changed.Broadcast()
}

// next waits for a suite, and returns the longest. It returns false when there will be none.
func (q *queue) next() (suite, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && (!q.begun || len(q.waiting) == 0) {
		q.changed.Wait()
	}
	if len(q.waiting) == 0 {
		return suite{}, false
	}
	longest := 0
	for i, s := range q.waiting {
		if s.seconds > q.waiting[longest].seconds {
			longest = i
		}
	}
	s := q.waiting[longest]
	q.waiting = append(q.waiting[:longest], q.waiting[longest+1:]...)
	return s, true
}
