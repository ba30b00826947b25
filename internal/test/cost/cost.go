// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cost lets tests compare the cost of an operation on a small set of objects with its cost
// on a large set.
package cost

import (
	"testing"
	"time"
)

// times is the number of repetitions of the operation in a measurement.
const times = 200

// Same fails the test if an operation takes more than ten times as long on a large set of objects
// (large) as on a small set (small). The large set must have a hundred times as many objects, so
// that a loop over all objects would take a hundred times as long.
func Same(t *testing.T, what string, small, large func()) {
	t.Helper()
	best := func(do func(), known time.Duration) time.Duration {
		start := time.Now()
		for range times {
			do()
		}
		return min(known, time.Since(start))
	}
	// The two measurements alternate, and only the shortest duration of each counts, so that other
	// load on the machine has little effect.
	a, b := time.Hour, time.Hour
	for range 20 {
		a, b = best(small, a), best(large, b)
	}
	if b > 10*a {
		t.Errorf("%d times %s take %s in the small world and %s in the large one, want about the same", times, what, a, b)
	}
}
