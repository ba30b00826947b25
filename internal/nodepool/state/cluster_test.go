// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPlanMore checks that an edit of a pool with many nodes queues each node once, and the pool when
// all nodes are planned, whatever happens meanwhile.
func TestPlanMore(t *testing.T) {
	const nodes = 3*plannedAtOnce + 1
	zone := setting.LabelKey("zone")
	pool := objects.Pool("a").MatchLabels("os", "linux")
	version := func(p *objects.PoolBuilder, generation int64, resourceVersion string) *tidekeeperv1.NodePool {
		object := p.Obj()
		object.Generation, object.ResourceVersion = generation, resourceVersion
		return object
	}
	node := func(i int) *objects.NodeBuilder { return objects.Node(fmt.Sprintf("n%d", i)).Label("os", "linux") }
	for _, tc := range []struct {
		name string
		// edited is the pool after the edit. meanwhile happens when the first nodes are planned.
		edited    *objects.PoolBuilder
		meanwhile func(*Cluster) []Dirty
		// first is the number of nodes that the edit itself queues.
		first, queued int
	}{
		{
			name: "a key that the pool manages", edited: objects.PoolFrom(pool.Obj()).Labels("zone", "1").Managing(zone),
			first: plannedAtOnce, queued: nodes,
		},
		{
			name: "a key that the pool does not manage yet", edited: objects.PoolFrom(pool.Obj()).Labels("zone", "1").ManagingNothing(),
		},
		{
			name: "which it then manages", edited: objects.PoolFrom(pool.Obj()).Labels("zone", "1").ManagingNothing(), queued: nodes,
			meanwhile: func(f *Cluster) []Dirty {
				now := version(objects.PoolFrom(pool.Obj()).Labels("zone", "1").Managing(zone), 2, "3")
				written := f.PoolWritten(now, time.Time{})
				return []Dirty{written, f.SetPool(now)}
			},
		},
		{
			name: "nodes go, or have got the label", edited: objects.PoolFrom(pool.Obj()).Labels("zone", "1").Managing(zone),
			first: plannedAtOnce, queued: plannedAtOnce,
			meanwhile: func(f *Cluster) (all []Dirty) {
				for i := range nodes {
					name := fmt.Sprintf("n%d", i)
					switch {
					case f.graph.nodes[name].summary.NeedsWrite:
					case i%2 == 0:
						all = append(all, f.DeleteNode(name))
					default:
						all = append(all, f.SetNode(node(i).LabelOf("a", "zone", "1").Obj()))
					}
				}
				return all
			},
		},
		{
			name: "it goes", edited: objects.PoolFrom(pool.Obj()).Labels("zone", "1").Managing(zone), first: plannedAtOnce, queued: plannedAtOnce,
			meanwhile: func(f *Cluster) []Dirty { return []Dirty{f.DeletePool("a")} },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := NewCluster()
			f.SetPool(version(pool, 1, "1"))
			for i := range nodes {
				f.SetNode(node(i).Obj())
			}
			all := []Dirty{f.SetPool(version(tc.edited, 2, "2"))}
			if queued := len(all[0].Nodes); queued != tc.first || !all[0].Unplanned {
				t.Errorf("the edit queued %d nodes, want %d, and more to plan: %t", queued, tc.first, all[0].Unplanned)
			}
			if v, _ := f.Pool("a"); !v.Planning {
				t.Error("the pool does not say that its nodes are still being planned")
			}
			if tc.meanwhile != nil {
				all = append(all, tc.meanwhile(f)...)
			}
			for all[len(all)-1].Unplanned || len(all) == 1 {
				all = append(all, f.Planning.More())
			}
			times := map[string]int{}
			for _, dirty := range all {
				for name := range dirty.Nodes {
					times[name]++
				}
			}
			for name, n := range times {
				if n > 1 {
					t.Errorf("%s was queued %d times", name, n)
				}
			}
			if len(times) != tc.queued {
				t.Errorf("%d nodes were queued, want %d", len(times), tc.queued)
			}
			v, known := f.Pool("a")
			if v.Planning {
				t.Error("the pool still says that its nodes are being planned")
			}
			if known && !slices.ContainsFunc(all[1:], func(dirty Dirty) bool { return dirty.Edited.Has("a") }) {
				t.Error("the pool is not queued when its nodes are planned")
			}
		})
	}
}

// TestDirty checks that each change to the model returns exactly the nodes and pools that must be
// reconciled.
func TestDirty(t *testing.T) {
	a, b := objects.Pool("a").Labels("of", "a"), objects.Pool("b").Labels("of", "b")
	build := func(given ...any) *Cluster {
		f := NewCluster()
		for _, o := range given {
			switch o := o.(type) {
			case *objects.PoolBuilder:
				f.SetPool(o.Obj())
			case *objects.NodeBuilder:
				f.SetNode(o.Obj())
			case *objects.PodBuilder:
				f.SetPod(o.Obj())
			}
		}
		return f
	}
	matchingA := objects.Node("n").Role("a").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "4")
	for _, tt := range []struct {
		name        string
		given       []any
		when        func(*Cluster) Dirty
		nodes       []string
		edited      []string
		pools       []string
		utilization []string
	}{
		{
			name:  "a node that joins a pool needs a write, and only its pool has changed",
			given: []any{a, b},
			when:  func(f *Cluster) Dirty { return f.SetNode(objects.Node("n").Role("a").Obj()) },
			nodes: []string{"n"}, pools: []string{"a"},
		},
		{
			name:  "S0.9: a node that moves concerns the pool it left and the one it joined, and no third",
			given: []any{a, b, objects.Pool("c"), matchingA},
			when: func(f *Cluster) Dirty {
				return f.SetNode(objects.Node("n").Role("b").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "4").Obj())
			},
			nodes: []string{"n"}, pools: []string{"a", "b"},
		},
		{
			name:  "a heartbeat concerns no pool",
			given: []any{a, matchingA},
			when:  func(f *Cluster) Dirty { return f.SetNode(matchingA.Obj()) },
		},
		{
			name:  "a node that ceases to be ready concerns its pool",
			given: []any{a, matchingA},
			when: func(f *Cluster) Dirty {
				return f.SetNode(objects.Node("n").Role("a").LabelOf("a", "of", "a").Capacity(corev1.ResourceCPU, "4").Obj())
			},
			pools: []string{"a"},
		},
		{
			name:  "more allocatable only changes the utilization",
			given: []any{a, matchingA},
			when: func(f *Cluster) Dirty {
				return f.SetNode(objects.Node("n").Role("a").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "8").Obj())
			},
			utilization: []string{"a"},
		},
		{
			name:        "a pod only changes the utilization of its node's pools",
			given:       []any{a, b, matchingA},
			when:        func(f *Cluster) Dirty { return f.SetPod(objects.Pod("p").On("n").Requests("1", "1Gi").Obj()) },
			utilization: []string{"a"},
		},
		{
			name:  "a pod whose status changes but not its requests concerns no pool",
			given: []any{a, matchingA, objects.Pod("p").On("n").Requests("1", "1Gi")},
			when: func(f *Cluster) Dirty {
				return f.SetPod(objects.Pod("p").On("n").Requests("1", "1Gi").Phase(corev1.PodRunning).Obj())
			},
		},
		{
			name:  "a pod that is not bound concerns no pool",
			given: []any{a, matchingA},
			when:  func(f *Cluster) Dirty { return f.SetPod(objects.Pod("p").Requests("1", "1Gi").Obj()) },
		},
		{
			name:  "a changed spec concerns the pool and its nodes",
			given: []any{a, b, matchingA, objects.Node("other").Role("b").LabelOf("b", "of", "b")},
			when: func(f *Cluster) Dirty {
				pool := objects.Pool("a").Labels("of", "x").Obj()
				pool.Generation = 2
				return f.SetPool(pool)
			},
			nodes: []string{"n"}, edited: []string{"a"}, pools: []string{"a"},
		},
		{
			name:  "a written status concerns no nodes",
			given: []any{a, matchingA},
			when: func(f *Cluster) Dirty {
				pool := a.Obj()
				pool.Status.NodeCount = 7
				return f.SetPool(pool)
			},
			pools: []string{"a"},
		},
		{
			name:  "a deleted pool releases its nodes, and the next one takes over",
			given: []any{objects.Pool("old").MatchLabels("z", "1").Labels("of", "old"), objects.Pool("new").CreatedAt(1).MatchLabels("z", "1").Labels("of", "new"), objects.Node("n").Label("z", "1").Label("of", "old")},
			when:  func(f *Cluster) Dirty { return f.DeletePool("old") },
			nodes: []string{"n"}, pools: []string{"old", "new"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.when(build(tt.given...))
			want := Dirty{Nodes: sets.New(tt.nodes...), Edited: sets.New(tt.edited...), Pools: sets.New(tt.pools...), Utilization: sets.New(tt.utilization...)}
			got.Utilization = got.Utilization.Difference(got.Pools)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Dirty{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("dirty (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAllKeys checks that a controller that starts late receives all pools, and all nodes that need
// a write.
func TestAllKeys(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Labels("of", "a").Obj())
	f.SetNode(objects.Node("right").Role("a").LabelOf("a", "of", "a").Obj())
	f.SetNode(objects.Node("wrong").Role("a").Obj())
	got := f.AllKeys()
	want := Dirty{Nodes: sets.New("wrong"), Edited: sets.New("a")}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Dirty{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("all keys (-want +got):\n%s", diff)
	}
}

// TestWritesInProgress checks that, while a node is being written, all pools in the node's plan
// report a write in progress, and that these pools are queued after the write.
func TestWritesInProgress(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Labels("of", "a").Obj())
	node := objects.Node("n").Role("a").Obj()
	f.SetNode(node)
	_, end1 := f.BeginWrite(node)
	_, end2 := f.BeginWrite(node)
	if v, _ := f.Pool("a"); !v.Writing {
		t.Error("Writing is false during a write")
	}
	if dirty := end1(); dirty.Utilization.Has("a") {
		t.Error("queued before the last write has ended")
	}
	if dirty := end2(); !dirty.Utilization.Has("a") {
		t.Error("not queued after the last write")
	}
	if v, _ := f.Pool("a"); v.Writing {
		t.Error("Writing is true after the last write")
	}
}

// TestStartRecording checks that joins and leaves are recorded only after StartRecording, which
// also records earlier joins and leaves as far as the nodes' ownership annotations show them.
func TestStartRecording(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Labels("of", "a").Obj())
	f.SetNode(objects.Node("long-there").Role("a").LabelOf("a", "of", "a").Obj())
	f.SetNode(objects.Node("new").Role("a").Obj())
	f.SetNode(objects.Node("gone").LabelOf("a", "of", "a").Obj())
	f.StartRecording()
	f.SetNode(objects.Node("live").Role("a").Obj())
	f.DeleteNode("long-there")

	events := f.Journal.pools["a"]
	if diff := cmp.Diff([]string{"live", "new"}, sets.List(events.joined)); diff != "" {
		t.Errorf("joined (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gone", "long-there"}, sets.List(events.left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestEvictionsAreAllowedOnce checks that permission to add a NoExecute taint to a node is used up:
// if the taint is removed later, the node has to wait again.
func TestEvictionsAreAllowedOnce(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Taint("out", "", corev1.TaintEffectNoExecute).Obj())
	bare := objects.Node("n").Role("a").Obj()
	if dirty := f.SetNode(bare); dirty.Nodes.Has("n") {
		t.Error("a NoExecute taint is added to a node that was not allowed")
	}
	if dirty := f.AllowEvictions("a", []string{"n", "unknown"}, nil, objects.PatchTime); !dirty.Nodes.Has("n") {
		t.Error("an allowed node is not queued")
	}
	f.SetNode(objects.Node("n").Role("a").TaintOf("a", "out", "", corev1.TaintEffectNoExecute).Obj())
	if dirty := f.SetNode(bare); dirty.Nodes.Has("n") {
		t.Error("a node that lost its NoExecute taint gets it back without waiting for its turn")
	}
	if got := slices.Collect(maps.Keys(f.graph.pools["a"].turns.pending)); len(got) != 1 {
		t.Errorf("evictions pending: %v, want n", got)
	}
}
