// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryLimit checks that a low limit applies until the cache has been filled, that only the
// container's limit applies afterwards, and that a limit set by the user is kept.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	expect := func(when string, want int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%s, the limit is %d, want %d", when, got, want)
		}
	}
	expectPercent := func(when string, want int) {
		t.Helper()
		got := debug.SetGCPercent(want)
		if got != want {
			t.Errorf("%s, GOGC is %d, want %d", when, got, want)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "")
	l := &memoryLimiter{}
	l.limit(1_000)
	expect("with 1,000 pods", minMemory)
	l.limit(150_000)
	expect("with 150,000 pods when the list is tried again", memoryWithoutPods+150_000*memoryPerPod)
	l.limit(math.MaxInt64)
	expect("with an absurd number of pods", memoryWithoutPods+maxPods*memoryPerPod)
	l.lift()
	expect("once the cache is filled", math.MaxInt64)
	expectPercent("once the cache is filled", gcPercent)
	l.limit(3_000)
	expect("when the pods are listed again", math.MaxInt64)

	l = &memoryLimiter{container: 300 << 20}
	l.limit(1_000)
	expect("with 1,000 pods in a container", minMemory)
	l.limit(1_000_000)
	expect("with more pods than the container has memory for", 300<<20)
	l.lift()
	expect("in a container, once the cache is filled", 300<<20)
	debug.SetMemoryLimit(math.MaxInt64)
	(&memoryLimiter{container: 300 << 20}).lift()
	expect("in a container, if no pods are watched", 300<<20)

	debug.SetMemoryLimit(1 << 40)
	debug.SetGCPercent(100)
	t.Setenv("GOGC", "100")
	l = &memoryLimiter{container: 300 << 20}
	l.limit(1_000)
	expect("with a limit of the user's", 1<<40)
	l.lift()
	expect("with a limit of the user's, once the cache is filled", 1<<40)
	expectPercent("with the user's own GOGC", 100)
}
