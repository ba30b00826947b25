// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestWritesAreThrottled checks that a node whose changes are repeatedly reverted is at first
// written in a burst, and then at a steady rate. Other nodes must not be affected, and a pause must
// allow another burst.
func TestWritesAreThrottled(t *testing.T) {
	f := NewCluster()
	for _, name := range []string{"reverted", "other", "gone"} {
		f.SetNode(objects.Node(name).Obj())
	}
	f.SetPod(objects.Pod("left").On("gone").Obj())
	written := func(node string, from time.Time, tries int, every time.Duration) (n int) {
		for i := range tries {
			if allowed, _ := f.AllowWrite(node, &plan.NodePlan{}, from.Add(time.Duration(i)*every)); allowed {
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

// TestNodesDoNotWaitForTheInformer checks that nodes can be written as soon as the API server has
// responded to the write of the managed keys, before the informer delivers the new version of the
// pool.
func TestNodesDoNotWaitForTheInformer(t *testing.T) {
	pool := objects.Pool("a").Labels("of", "a").ManagingNothing().Obj()
	pool.ResourceVersion = "10"
	vouching := objects.Pool("a").Labels("of", "a").Obj()
	vouching.ResourceVersion = "12"
	node := objects.Node("n").Role("a").Obj()
	writes := func(f *Cluster) bool {
		nodePlan, end := f.BeginWrite(node)
		defer end()
		return !nodePlan.Empty()
	}

	f := NewCluster()
	f.SetNode(node)
	if dirty := f.SetPool(pool); dirty.Nodes.Has("n") || writes(f) {
		t.Error("the node is written before the pool vouches for the key")
	}
	if dirty := f.PoolWritten(vouching, time.Time{}); !dirty.Nodes.Has("n") || !writes(f) {
		t.Error("the node is not written when the pool vouches for the key")
	}
	late := pool.DeepCopy()
	late.ResourceVersion = "11"
	if f.SetPool(late); !writes(f) {
		t.Error("an older version, which the informer shows late, counts")
	}
	if dirty := f.SetPool(vouching); dirty.Nodes.Has("n") {
		t.Error("the node is queued twice")
	}
	if p := f.graph.pools["a"]; p.ahead.version != "" || p.ahead.unplanned || p.object != vouching {
		t.Errorf("when the informer has shown it, the model is ahead by %q, unplanned: %t", p.ahead.version, p.ahead.unplanned)
	}

	// The response to a write must neither be applied to a pool with the same name that was created
	// later, nor restore a deleted pool.
	again := pool.DeepCopy()
	again.UID, again.ResourceVersion = "again", "20"
	f.SetPool(again)
	if dirty := f.PoolWritten(vouching, time.Time{}); len(dirty.Nodes) > 0 || writes(f) {
		t.Error("the answer about a pool counts for the next one of its name")
	}
	f.DeletePool("a")
	if f.PoolWritten(vouching, time.Time{}); len(f.PoolNames()) > 0 {
		t.Error("the answer brings back a pool that is gone")
	}
}

// TestEdited checks that only the creation, edit and deletion of a pool mark the pool as edited, so
// that it is queued without a delay.
func TestEdited(t *testing.T) {
	f := NewCluster()
	pool := objects.Pool("a").Labels("of", "a").Obj()
	change := func(what string, edited bool, edit func()) {
		t.Helper()
		pool = pool.DeepCopy()
		edit()
		if dirty := f.SetPool(pool); dirty.Edited.Has("a") != edited || !dirty.Pools.Has("a") {
			t.Errorf("%s: edited %v, changed %v", what, dirty.Edited, dirty.Pools)
		}
	}
	change("created", true, func() {})
	change("status", false, func() { pool.Status.NodeCount = 1 })
	change("finalizer", false, func() { pool.Finalizers = nil })
	change("spec", true, func() { pool.Generation++ })
	change("deleted", true, func() { pool.DeletionTimestamp = &metav1.Time{Time: objects.Epoch} })
	change("another", true, func() { pool.UID, pool.DeletionTimestamp = "another", nil })
	if dirty := f.SetNode(objects.Node("n").Role("a").Obj()); len(dirty.Edited) > 0 {
		t.Errorf("a node that joins: edited %v", dirty.Edited)
	}
}
