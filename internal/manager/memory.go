// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// initialSyncGrace is how long the controllers need to process the initial sync of
// the cache.
const initialSyncGrace = 5 * time.Second

// The memory in bytes that the Go runtime may take while the cache fills: without pods, and for
// each of them. That is about half as much again as it takes afterwards, so that the collection of
// garbage does not come too often. Less than minMemory is not worth a limit, which the objects of
// other kinds could exceed. See docs/performance.md.
const (
	memoryWithoutPods = 48 << 20
	memoryPerPod      = 1200
	minMemory         = 192 << 20
	// maxPods bounds what an answer can say.
	maxPods = 10_000_000
)

// gcPercent is how much garbage the Go runtime lets gather once the cache is filled, in percent of
// what is in use. Its own 100 would take half as much memory again for good, to save a collection
// of garbage a minute. It stands unless GOGC is set.
const gcPercent = 50

// memoryLimiter limits the memory while the cache fills, and returns what that took to the
// operating system once it is processed. Left alone, the runtime would let the heap grow
// to twice of what is in use, which grows all the while, and return memory over minutes;
// a container's limit would have to allow for both. GOMEMLIMIT does not serve: it would
// have to be chosen for the size of the cluster, at the cost of more garbage collections
// ever after. Where it is set, the memory is not limited otherwise.
type memoryLimiter struct {
	mu     sync.Mutex
	filled bool
	// limited says that limit has set a limit, where none was before.
	limited bool
}

// limit limits the memory to what is needed to fill the cache with that many pods. It does nothing
// once the cache was filled: a list that comes again meets a heap that is large already.
func (l *memoryLimiter) limit(pods int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filled || !l.limited && debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	l.limited = true
	debug.SetMemoryLimit(max(minMemory, memoryWithoutPods+min(pods, maxPods)*memoryPerPod))
}

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable]. The manager
// calls it once the cache has synced.
func (l *memoryLimiter) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(initialSyncGrace):
		l.lift()
		debug.FreeOSMemory()
	}
	return nil
}

// lift removes the limit, and has garbage collected sooner instead.
func (l *memoryLimiter) lift() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = true
	if l.limited {
		debug.SetMemoryLimit(math.MaxInt64)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// NeedLeaderElection implements
// [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable]: a standby
// lists all objects, too.
func (*memoryLimiter) NeedLeaderElection() bool { return false }
