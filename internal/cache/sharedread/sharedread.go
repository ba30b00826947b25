// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharedread lets concurrent callers share a single uncached read of the same value from
// the API server. It serves decisions that must not rely on the cache. For example, Freezes are
// read in this way before a restart.
package sharedread

import (
	"context"
	"sync"
	"time"
)

const (
	// For is the time for which the result of a read is shared. Restarts that become due at the
	// same time then cause a single read.
	For = time.Second
	// timeout is the timeout of a read. It is also the maximum time that the callers sharing a read
	// wait.
	timeout = 10 * time.Second
)

// Reads holds the most recent read of each key. Its zero value is empty and ready to use.
type Reads[K comparable, V any] struct {
	mu    sync.Mutex
	reads map[K]*one[V]
	swept time.Time
}

// one is a single read, which started at the time in begun. The channel done is closed after value
// and err have been set.
type one[V any] struct {
	begun time.Time
	done  chan struct{}
	value V
	err   error
}

// Get returns the result of the key's last read if that read began at notBefore or later, and less
// than [For] before now. Otherwise it calls `read`. A read of another caller that began after now is
// shared, too, because its result is newer than required: now is the time at which the caller's
// reconcile began, and a slow reconcile asks long after it. A read that began much later than now is
// not shared, because the clock was then set back. If a read fails, only the callers that wait for
// this read get its error; the next Get reads again.
func (s *Reads[K, V]) Get(ctx context.Context, key K, now, notBefore time.Time, read func(context.Context) (V, error)) (V, error) {
	last, isNew := s.begin(key, now, notBefore)
	if isNew {
		// Other callers wait for this read too, so it must not be cancelled with this caller's
		// context.
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
	old := func(r *one[V]) bool {
		age := now.Sub(r.begun)
		return age >= For || age <= -timeout
	}
	if last = s.reads[key]; last != nil && !old(last) && !last.begun.Before(notBefore) {
		return last, false
	}
	if s.reads == nil {
		s.reads = map[K]*one[V]{}
	}
	if now.Sub(s.swept).Abs() >= For {
		// Drop the results that are too old to be shared.
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

// Forget drops the key's last read, so that the next Get reads again.
func (s *Reads[K, V]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reads, key)
}

// Len returns the number of stored read results, for tests.
func (s *Reads[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}
