// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// Journal collects the changes to pools until they are reported as events. All methods may be
// called from several goroutines.
type Journal struct {
	mu sync.Mutex
	// moves is true while joins and leaves are recorded: in the leader, once the model has been
	// filled.
	moves bool
	pools map[string]*eventAggregator
}

func newJournal() *Journal { return &Journal{pools: map[string]*eventAggregator{}} }

// startMoves starts the recording of joins and leaves, and reports whether it was off before.
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

// forget drops the events of a deleted pool.
func (j *Journal) forget(pool string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pools, pool)
}

// Take returns the due events of the pool, and the time after which to ask again for later
// events; 0 if there are none.
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

// of returns the aggregator of a pool. The caller holds the lock.
func (j *Journal) of(pool string) *eventAggregator {
	if j.pools[pool] == nil {
		j.pools[pool] = &eventAggregator{}
	}
	return j.pools[pool]
}
