// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharedread lets concurrent callers with the same question to the API server share a
// single read. It is for values that a decision must not take from the cache, such as a Freeze
// before a restart.
package sharedread

import (
	"context"
	"sync"
	"time"
)

const (
	// For is the time for which the result of a read is shared, so that many restarts that are
	// due together read once.
	For = time.Second
	// timeout bounds a read, and so the wait of all callers that share it.
	timeout = 10 * time.Second
)

// Reads are the last reads of values by key. The zero value is empty and ready to use.
type Reads[K comparable, V any] struct {
	mu    sync.Mutex
	reads map[K]*one[V]
	swept time.Time
}

// one is a read that began at the time begun. done is closed when value and err are set.
type one[V any] struct {
	begun time.Time
	done  chan struct{}
	value V
	err   error
}

// Get returns the result of a read of the key that began at notBefore or later, and less than
// [For] ago. If there is no such read, it calls read. An error is returned to concurrent
// callers only.
func (s *Reads[K, V]) Get(ctx context.Context, key K, now, notBefore time.Time, read func(context.Context) (V, error)) (V, error) {
	last, isNew := s.begin(key, now, notBefore)
	if isNew {
		// Other callers wait for the read, even if this reconcile is cancelled.
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

func (s *Reads[K, V]) begin(key K, now, notBefore time.Time) (last *one[V], isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := func(r *one[V]) bool { return now.Sub(r.begun).Abs() >= For }
	if last = s.reads[key]; last != nil && !old(last) && !last.begun.Before(notBefore) {
		return last, false
	}
	if s.reads == nil {
		s.reads = map[K]*one[V]{}
	}
	if now.Sub(s.swept).Abs() >= For {
		// Results that are no longer asked for are dropped.
		s.swept = now
		for k, r := range s.reads {
			if old(r) {
				delete(s.reads, k)
			}
		}
	}
	last = &one[V]{begun: now, done: make(chan struct{})}
	s.reads[key] = last
	return last, true
}

func (s *Reads[K, V]) fill(ctx context.Context, key K, r *one[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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

// Forget drops the last read of the key, so that the next Get reads again.
func (s *Reads[K, V]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reads, key)
}

// Len returns the number of reads that are kept.
func (s *Reads[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}
