// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// A node whose changes are reverted again and again is written in a burst at first, and then
// at a steady rate. Other nodes are not affected, and a pause allows a burst again.
func TestWritesAreThrottled(t *testing.T) {
	f := NewCluster()
	for _, name := range []string{"reverted", "other", "gone"} {
		f.SetNode(objects.Node(name).Obj())
	}
	f.SetPod(objects.Pod("left").On("gone").Obj())
	written := func(node string, from time.Time, tries int, every time.Duration) (n int) {
		for i := range tries {
			if f.AllowWrite(node, from.Add(time.Duration(i)*every)) {
				n++
			}
		}
		return n
	}
	if n := written("reverted", objects.Epoch, 1000, 100*time.Millisecond); n != plan.WriteBurst+9 {
		t.Errorf("%d writes in 100 seconds, want %d at once and one in ten seconds", n, plan.WriteBurst)
	}
	if n := written("other", objects.Epoch, 3, time.Second); n != 3 {
		t.Errorf("%d of 3 writes to a node whose changes are not reverted", n)
	}
	if n := written("reverted", objects.Epoch.Add(time.Hour), 3, time.Second); n != 3 {
		t.Errorf("%d of 3 writes after a pause of an hour", n)
	}
	written("gone", objects.Epoch, 100, 0)
	f.DeleteNode("gone")
	f.SetNode(objects.Node("gone").Obj())
	if n := written("gone", objects.Epoch, 3, 0); n != 3 {
		t.Errorf("%d of 3 writes to a node that was created again: the limit of the deleted one applies", n)
	}
}
