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

// initialSyncGrace is the time that controllers have to process the cache's initial sync.
const initialSyncGrace = 5 * time.Second

// Terms of the Go runtime's memory limit in bytes while the cache fills: a fixed part and a part
// per pod. Their sum is about one and a half times the memory in use afterwards, so that garbage
// collections are not too frequent. A limit below minMemory is not useful, because objects of other
// kinds could exceed it. See test/scale/performance.md.
const (
	memoryWithoutPods = 48 << 20
	memoryPerPod      = 1200
	minMemory         = 192 << 20
	// maxPods bounds the number of pods in the computation, because the number is taken from an API
	// server's response.
	maxPods = 10_000_000
)

// gcPercent is the value of GOGC after the cache has been filled: the amount of garbage, as a
// percentage of the memory in use, that triggers a collection. The default of 100 would save about
// one collection per minute, but the heap would permanently grow to twice the memory in use,
// instead of one and a half times. The environment variable GOGC takes precedence.
const gcPercent = 50

// containerPercent is the Go runtime's share of the container's memory limit in percent. The rest
// is for memory that the runtime does not manage, such as the program's code pages.
const containerPercent = 90

// memoryLimiter sets the Go runtime's memory limit: a low limit while the cache fills, and
// afterwards the runtime's share of the container's limit. It then returns the freed memory to the
// operating system.
//
// Without memoryLimiter, the heap would grow to twice the memory in use, and the runtime would
// return memory only over minutes. The container's limit would therefore have to be higher.
// GOMEMLIMIT is no replacement, because it would have to be chosen for the cluster's size, and
// would permanently cost more garbage collections. If GOMEMLIMIT is set, memoryLimiter sets no
// limit.
type memoryLimiter struct {
	mu     sync.Mutex
	filled bool
	// limited is true if the method limit has set a memory limit. The method sets none if another
	// limit, such as GOMEMLIMIT, was set before.
	limited bool
	// container is the Go runtime's share of the container's memory limit in bytes. It is 0 if the
	// container has no limit.
	container int64
}

// newMemoryLimiter returns a limiter that stays within the container's memory limit, if there is
// one.
func newMemoryLimiter() *memoryLimiter {
	most, err := memlimit.FromCgroup()
	if err != nil || most > math.MaxInt64 {
		return &memoryLimiter{}
	}
	return &memoryLimiter{container: int64(most) / 100 * containerPercent}
}

// limit sets the memory limit for filling the cache with the given number of pods. It does nothing
// once the cache has been filled, because the heap is already large when a list is repeated.
func (l *memoryLimiter) limit(pods int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filled || !l.limited && debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	l.limited = true
	debug.SetMemoryLimit(min(max(minMemory, memoryWithoutPods+min(pods, maxPods)*memoryPerPod), l.bound()))
}

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable]. The manager calls it once
// the cache has synced. Start then waits for initialSyncGrace and lifts the low memory limit.
func (l *memoryLimiter) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(initialSyncGrace):
		l.lift()
		debug.FreeOSMemory()
	}
	return nil
}

// bound returns the upper bound of the limits that memoryLimiter sets: the runtime's share of the
// container's limit, or the maximum integer if the container has no limit.
func (l *memoryLimiter) bound() int64 { return cmp.Or(l.container, math.MaxInt64) }

// lift raises the memory limit to the runtime's share of the container's limit, and sets GOGC to
// gcPercent.
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
// [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable]. It returns false because a
// standby fills its cache, too.
func (*memoryLimiter) NeedLeaderElection() bool { return false }
