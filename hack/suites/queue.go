// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// queue holds the suites that are ready to run. The longest suite is taken first, so that the last
// suites of a run end at about the same time. Suites may be added while others run.
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	waiting []suite
	// alone lists the suites that must run alone. They run after all others, in the order in which
	// they were added.
	alone []suite
	// begun is true after all suites without needs have been added. closed is true when no more
	// suites will be added.
	begun, closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add adds a suite that is ready to run.
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

// next waits until a suite is ready, then removes and returns the longest ready suite. It returns
// false once the queue is closed and empty.
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
