// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// Journal collects changes to pools and their nodes until they are reported as events. All methods
// are safe for concurrent use.
type Journal struct {
	mu sync.Mutex
	// moves is true while the journal records nodes that join and leave pools. They are recorded
	// only in the leader, once the model is complete.
	moves bool
	pools map[string]*eventAggregator
}

func newJournal() *Journal { return &Journal{pools: map[string]*eventAggregator{}} }

// startMoves starts recording nodes that join and leave pools. It returns false if recording has
// already started.
func (j *Journal) startMoves() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	began := !j.moves
	j.moves = true
	return began
}

func (j *Journal) join(pool, node string) {
	j.move(pool, func(of *eventAggregator) { of.recordJoin(node) })
}

func (j *Journal) leave(pool, node string) {
	j.move(pool, func(of *eventAggregator) { of.recordLeave(node) })
}

func (j *Journal) move(pool string, record func(*eventAggregator)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.moves {
		record(j.of(pool))
	}
}

func (j *Journal) change(node string, c plan.Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(c.Pool).recordChange(node, c)
}

func (j *Journal) failure(pool, node, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(pool).recordFailure(node, message)
}

func (j *Journal) throttled(pool, node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(pool).recordConflictingWriter(node)
}

// forget drops the unreported changes of a deleted pool.
func (j *Journal) forget(pool string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pools, pool)
}

// Take removes and returns the pool's events that are due. It also returns the time until further
// events are due, or 0 if there are none.
func (j *Journal) Take(pool string, now time.Time) ([]Event, time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of, known := j.pools[pool]
	if !known {
		return nil, 0
	}
	events, wait := of.take(now)
	if wait == 0 {
		delete(j.pools, pool)
	}
	return events, wait
}

// of returns the event aggregator of a pool, and creates it if necessary. The caller must hold the
// lock.
func (j *Journal) of(pool string) *eventAggregator {
	if j.pools[pool] == nil {
		j.pools[pool] = &eventAggregator{}
	}
	return j.pools[pool]
}
