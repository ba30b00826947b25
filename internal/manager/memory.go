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

// initialSyncGrace is the time that the controllers need to process the initial sync of the
// cache.
const initialSyncGrace = 5 * time.Second

// The memory limit in bytes of the Go runtime while the cache fills: without pods, and per pod.
// It is about one and a half times the memory in use afterwards, so that garbage collections do
// not come too often. Below minMemory a limit is not worthwhile, since objects of other kinds
// could exceed it. See test/scale/performance.md.
const (
	memoryWithoutPods = 48 << 20
	memoryPerPod      = 1200
	minMemory         = 192 << 20
	// maxPods is an upper bound for the number of pods in an answer of the API server.
	maxPods = 10_000_000
)

// gcPercent is the value of GOGC once the cache is filled: the amount of garbage, in percent of
// the memory in use, that triggers a collection. The default of 100 would permanently take half
// as much memory again, to save a collection per minute. The environment variable GOGC takes
// precedence.
const gcPercent = 50

// memoryLimiter limits the memory while the cache fills, and afterwards returns the freed
// memory to the operating system. Left alone, the runtime would let the heap grow to twice the
// memory in use, and return memory only over minutes; a container's limit would have to allow
// for both. GOMEMLIMIT is no replacement: it would have to be chosen for the size of the
// cluster, at the cost of more garbage collections forever after. If GOMEMLIMIT is set,
// memoryLimiter sets no limit.
type memoryLimiter struct {
	mu     sync.Mutex
	filled bool
	// limited is true if limit has set a limit, and none was set before.
	limited bool
}

// limit limits the memory to the amount needed to fill the cache with that many pods. It does
// nothing once the cache has been filled: when a list is repeated, the heap is already large.
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

// lift removes the limit, and makes garbage collections more frequent instead.
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
