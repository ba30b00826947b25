// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"sync"
	"time"
)

// sharedFor is how long an object from the API server answers further questions, also those of
// other ScheduledRestarts: of many that use it and are due at once, one asks.
const sharedFor = time.Second

// sharedReads are the last reads of objects from the API server.
type sharedReads[K comparable, V any] struct {
	mu    sync.Mutex
	reads map[K]*sharedRead[V]
	swept time.Time
}

// sharedRead is a read that was begun at a time. done is closed when the rest is filled in.
type sharedRead[V any] struct {
	begun time.Time
	done  chan struct{}
	value V
	err   error
}

// get returns what a read returned that was begun at most sharedFor ago. An error is not shared
// with what comes later.
func (s *sharedReads[K, V]) get(ctx context.Context, key K, now time.Time, read func(context.Context) (V, error)) (V, error) {
	last, isNew := s.begin(key, now)
	if isNew {
		// Others wait for it, whatever becomes of this reconcile.
		s.fill(context.WithoutCancel(ctx), key, last, read)
	}
	select {
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	case <-last.done:
		return last.value, last.err
	}
}

func (s *sharedReads[K, V]) begin(key K, now time.Time) (last *sharedRead[V], isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := func(r *sharedRead[V]) bool { return now.Sub(r.begun).Abs() >= sharedFor }
	if last = s.reads[key]; last != nil && !old(last) {
		return last, false
	}
	if s.reads == nil {
		s.reads = map[K]*sharedRead[V]{}
	}
	if now.Sub(s.swept).Abs() >= sharedFor {
		// What is asked about no more is not kept.
		s.swept = now
		for k, r := range s.reads {
			if old(r) {
				delete(s.reads, k)
			}
		}
	}
	last = &sharedRead[V]{begun: now, done: make(chan struct{})}
	s.reads[key] = last
	return last, true
}

func (s *sharedReads[K, V]) fill(ctx context.Context, key K, r *sharedRead[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	defer close(r.done)
	if r.value, r.err = read(ctx); r.err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.reads[key] == r {
			delete(s.reads, key)
		}
	}
}

// forget has the next one read again: the cache has shown that the object has changed.
func (s *sharedReads[K, V]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reads, key)
}
