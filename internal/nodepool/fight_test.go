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
	f := newFleet()
	for _, name := range []string{"fought over", "other", "gone"} {
		f.setNode(MakeNode(name).Obj())
	}
	f.setPod(MakePod("left").On("gone").Obj())
	written := func(node string, from time.Time, tries int, every time.Duration) (n int) {
		for i := range tries {
			if f.mayWrite(node, from.Add(time.Duration(i)*every)) {
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
	f.deleteNode("gone")
	f.setNode(MakeNode("gone").Obj())
	if n := written("gone", poolEpoch, 3, 0); n != 3 {
		t.Errorf("%d of 3 writes to a node that was made anew: it pays for the one before it", n)
	}
}
