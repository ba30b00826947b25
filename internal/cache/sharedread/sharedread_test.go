// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package sharedread

import (
	"context"
	"testing"
	"time"
)

// TestShare reads the same key with different times of callers, as reconciles do that began at
// different times and read at the same time.
func TestShare(t *testing.T) {
	t0 := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name      string
		then      time.Duration // the second caller's time after the first caller's
		notBefore time.Time
		reads     int
	}{
		{name: "at the same time", reads: 1},
		{name: "a little later", then: For - 1, reads: 1},
		{name: "later than reads are shared", then: For, reads: 2},
		{name: "a slow reconcile that began earlier", then: -2 * For, reads: 1},
		{name: "the clock was set back", then: -time.Hour, reads: 2},
		{name: "a newer read is required", notBefore: t0.Add(1), reads: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var reads Reads[string, int]
			n := 0
			read := func(context.Context) (int, error) { n++; return n, nil }
			for _, now := range []time.Time{t0, t0.Add(c.then)} {
				got, err := reads.Get(t.Context(), "key", now, c.notBefore, read)
				if err != nil || got != n {
					t.Fatalf("got %d, %v, want the result of the last read, %d", got, err, n)
				}
			}
			if n != c.reads {
				t.Errorf("%d reads, want %d", n, c.reads)
			}
		})
	}
}
