// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharedread answers many who ask the API server the same at about the same time by one
// read. It is for what a decision must not take from the cache, such as a Freeze before a restart.
package sharedread

import (
	"context"
	"sync"
	"time"
)

const (
	// For is how long a read answers further questions: of many restarts that are due at once, one
	// asks.
	For = time.Second
	// timeout bounds a read, and how long all wait who share it.
	timeout = 10 * time.Second
)

// Reads are the last reads of values by their keys. The zero value has none, and is ready to use.
type Reads[K comparable, V any] struct {
	mu    sync.Mutex
	reads map[K]*one[V]
	swept time.Time
}

// one is a read that was begun at a time. done is closed when the rest is filled in.
type one[V any] struct {
	begun time.Time
	done  chan struct{}
	value V
	err   error
}

// Get returns what a read of the key returned that was begun at the time notBefore or later, and
// less than [For] ago; it reads if there is none. An error is not shared with what comes later.
func (s *Reads[K, V]) Get(ctx context.Context, key K, now, notBefore time.Time, read func(context.Context) (V, error)) (V, error) {
	last, isNew := s.begin(key, now, notBefore)
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
		// What is asked about no more is not kept.
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

// Forget has the next one read again: something has shown that the value has changed.
func (s *Reads[K, V]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reads, key)
}

// Len returns how many reads are kept.
func (s *Reads[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}
