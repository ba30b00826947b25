// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"
)

// TestFights: a node that never comes to rest is written in bursts at first,
// then at a steady pace; others are not affected, and rest is rewarded.
func TestFights(t *testing.T) {
	f := newFights()
	written := func(node string, from time.Time, tries int, every time.Duration) (n int) {
		for i := range tries {
			if f.allow(node, from.Add(time.Duration(i)*every)) {
				n++
			}
		}
		return n
	}
	if n := written("fought over", poolEpoch, 1000, 100*time.Millisecond); n != fightBurst+9 {
		t.Errorf("%d writes in 100 seconds, want %d at once and one in ten seconds", n, fightBurst)
	}
	if n := written("other", poolEpoch, 3, time.Second); n != 3 {
		t.Errorf("%d of 3 writes to a node that nobody fights over", n)
	}
	if n := written("fought over", poolEpoch.Add(time.Hour), 3, time.Second); n != 3 {
		t.Errorf("%d of 3 writes after an hour of rest", n)
	}
	written("gone", poolEpoch, 100, 0)
	f.forget("gone")
	if !f.allow("gone", poolEpoch) {
		t.Error("a node that was made anew pays for the one before it")
	}
}
