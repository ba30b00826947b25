// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
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

// containerPercent is the share of the memory limit of its container that the Go runtime uses
// before it collects garbage as often as it can. The rest is for memory outside of the heap, such
// as the pages of the program.
const containerPercent = 90

// memoryLimiter limits the memory while the cache fills, and afterwards to the container's share,
// and returns the freed memory to the operating system. Left alone, the runtime would let the heap
// grow to twice the memory in use, and return memory only over minutes; a container's limit would
// have to allow for both. GOMEMLIMIT is no replacement: it would have to be chosen for the size of the
// cluster, at the cost of more garbage collections forever after. If GOMEMLIMIT is set,
// memoryLimiter sets no limit.
type memoryLimiter struct {
	mu     sync.Mutex
	filled bool
	// limited is true if limit has set a limit, and none was set before.
	limited bool
	// container is the memory in bytes that the runtime may use in its container; 0 for no bound.
	container int64
}

// newMemoryLimiter returns a limiter that knows the limit of the container, if there is one.
func newMemoryLimiter() *memoryLimiter {
	most, err := memlimit.FromCgroup()
	if err != nil || most > math.MaxInt64 {
		return &memoryLimiter{}
	}
	return &memoryLimiter{container: int64(most) / 100 * containerPercent}
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
	debug.SetMemoryLimit(min(max(minMemory, memoryWithoutPods+min(pods, maxPods)*memoryPerPod), l.bound()))
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

// bound returns the limit that holds at any time.
func (l *memoryLimiter) bound() int64 { return cmp.Or(l.container, math.MaxInt64) }

// lift removes the limit, but for that of the container, and makes garbage collections more frequent instead.
func (l *memoryLimiter) lift() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = true
	if l.limited || debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(l.bound())
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// NeedLeaderElection implements
// [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable]: a standby
// lists all objects, too.
func (*memoryLimiter) NeedLeaderElection() bool { return false }
