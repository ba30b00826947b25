// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPaceOfEmptying checks that the eviction pace counts a node that is being emptied within
// budgets from the time at which it was closed, as long as pods are left, and that adding the taint
// at the end does not count again.
func TestPaceOfEmptying(t *testing.T) {
	ago := func(d time.Duration) time.Time { return objects.PatchTime.Add(-d) }
	closed := func(name string, since time.Time) *corev1.Node {
		return objects.Node(name).Role("a").TaintOf("a", "out", "", objects.NoSchedule).Closed("a", "out", since).Obj()
	}
	tainted := func(name string, since time.Time) *corev1.Node {
		return objects.Node(name).Role("a").TaintAt("out", "", objects.NoExecute, since).Obj()
	}
	f := NewCluster()
	f.SetPool(objects.Pool("a").TaintWithinBudgets("out", "").Obj())
	f.SetNode(objects.Node("waits").Role("a").Obj())
	f.SetNode(closed("closed", ago(time.Minute)))
	f.SetNode(closed("empty", ago(time.Minute)))
	f.SetNode(closed("stuck", ago(time.Hour)))
	f.SetNode(tainted("done", ago(time.Second)))
	f.SetNode(tainted("losing", ago(time.Second)))
	for _, node := range []string{"waits", "closed", "stuck", "losing"} {
		f.SetPod(objects.Pod("p-" + node).On(node).Obj())
	}
	got, _, _ := f.Evictions("a", plan.MaxEvictionDuration, objects.PatchTime)
	want := []plan.NodeEviction{
		{Node: "closed", Member: true, Since: ago(time.Minute), AffectedPods: 1},
		{Node: "done", Member: true},
		{Node: "empty", Member: true, Since: ago(time.Minute)},
		{Node: "losing", Member: true, Since: ago(time.Second), AffectedPods: 1},
		{Node: "waits", Member: true, Waiting: true, AffectedPods: 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plan.NodeEviction{})); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
}

// TestEmptying follows a node from its turn to its taint. It checks which nodes are being emptied,
// which nodes are queued, the pool's snapshot, and that each permission is used only once.
func TestEmptying(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").TaintWithinBudgets("out", "").Obj())
	open := objects.Node("n").Role("a").Obj()
	closed := objects.Node("n").Role("a").TaintOf("a", "out", "", objects.NoSchedule).Closed("a", "out", objects.PatchTime).Obj()
	tainted := objects.Node("n").Role("a").TaintOf("a", "out", "", objects.NoExecute).Obj()
	f.SetNode(open)
	pod := objects.Pod("p").On("n").Obj()
	f.SetPod(pod)

	f.Emptying.AllowTaints("a", "n")
	if dirty := f.AllowEvictions("a", []string{"n"}, nil, objects.PatchTime); !dirty.Nodes.Has("n") || dirty.Emptying.Has("n") || len(f.Emptying.Taints("n")) > 0 {
		t.Error("the node is emptied before it is closed")
	}
	nodePlan, end := f.BeginWrite(open)
	end()
	if len(nodePlan.Emptied) > 0 {
		t.Error("the node is tainted before it is emptied")
	}
	if dirty := f.SetNode(closed); !dirty.Emptying.Has("n") || dirty.Nodes.Has("n") {
		t.Errorf("when it is closed, queued are %v", dirty)
	}
	want := []plan.TaintBeingPrepared{{Pool: "a", Taint: corev1.Taint{Key: "out", Effect: corev1.TaintEffectNoExecute}, Since: objects.PatchTime}}
	if diff := cmp.Diff(want, f.Emptying.Taints("n")); diff != "" {
		t.Errorf("being emptied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"n"}, f.Emptying.Nodes()); diff != "" || !f.AllKeys().Emptying.Has("n") {
		t.Errorf("all that are being emptied (-want +got):\n%s", diff)
	}

	since := objects.PatchTime.Add(time.Minute)
	progress := EmptyingProgress{Left: 1, Pod: "default/p", Because: "no", BlockedSince: since}
	if dirty := f.Emptying.Record("n", progress); !dirty.Pools.Has("a") {
		t.Error("the pool does not learn that a node is blocked")
	}
	if dirty := f.Emptying.Record("n", progress); len(dirty.Pools) > 0 {
		t.Error("the pool is queued although nothing is new")
	}
	v, _ := f.Pool("a")
	if v.Emptying != 1 || v.Blocked != 1 || v.EvictionPending != 0 || v.Outdated != 1 {
		t.Errorf("the pool shows %+v", v)
	}
	blocked := &tidekeeperv1.BlockedNode{Node: "n", Pods: 1, Pod: "default/p", Message: "no"}
	blocked.Since.Time = since
	if diff := cmp.Diff(blocked, v.LongestBlocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	if dirty := f.DeletePod(pod.UID); !dirty.Emptying.Has("n") {
		t.Error("the node is not looked at when a pod has left it")
	}

	if dirty := f.Emptying.AllowTaints("a", "n"); !dirty.Nodes.Has("n") || !dirty.Emptying.Has("n") || len(f.Emptying.Taints("n")) > 0 {
		t.Error("the node is not written when it is empty")
	}
	if dirty := f.Emptying.WithdrawTaints("n"); !dirty.Emptying.Has("n") {
		t.Error("the node is not looked at again when a pod was found on it")
	}
	if nodePlan, end := f.BeginWrite(closed); !nodePlan.Empty() {
		t.Error("the permission was not withdrawn")
	} else {
		end()
	}
	f.Emptying.AllowTaints("a", "n")
	f.SetNode(tainted)
	if v, _ := f.Pool("a"); v.Emptying != 0 || v.Blocked != 0 || v.LongestBlocked != nil {
		t.Errorf("afterwards, the pool shows %+v", v)
	}
	f.SetNode(open)
	f.AllowEvictions("a", []string{"n"}, nil, objects.PatchTime)
	f.SetNode(closed)
	if len(f.Emptying.Taints("n")) != 1 {
		t.Error("when it was opened by hand, it is not emptied again")
	}
	if nodePlan, end := f.BeginWrite(closed); !nodePlan.Empty() {
		t.Error("the permission was used twice")
	} else {
		end()
	}
}

// TestEmptiedIsForgotten checks that a node that was emptied for a taint must be emptied again for
// another taint of a later spec.
func TestEmptiedIsForgotten(t *testing.T) {
	f := NewCluster()
	pool := objects.Pool("a").TaintWithinBudgets("out", "").Obj()
	f.SetPool(pool)
	f.SetNode(objects.Node("n").Role("a").Obj())
	f.AllowEvictions("a", []string{"n"}, sets.New("n"), objects.PatchTime)
	other := objects.Pool("a").TaintWithinBudgets("other", "").Obj()
	other.Generation = 2
	f.SetPool(other)
	nodePlan, end := f.BeginWrite(objects.Node("n").Role("a").Obj())
	end()
	if len(nodePlan.Emptied) > 0 {
		t.Errorf("the node is tainted at once: %v", nodePlan.Changes)
	}
}
