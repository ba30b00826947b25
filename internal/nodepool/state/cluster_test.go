// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestFleetAnswers: each change is answered with just what has to be looked at.
func TestFleetAnswers(t *testing.T) {
	a, b := objects.Pool("a").Labels("of", "a"), objects.Pool("b").Labels("of", "b")
	build := func(given ...any) *Cluster {
		f := NewCluster()
		for _, o := range given {
			switch o := o.(type) {
			case *objects.PoolMaker:
				f.SetPool(o.Obj())
			case *objects.NodeMaker:
				f.SetNode(o.Obj())
			case *objects.PodMaker:
				f.SetPod(o.Obj())
			}
		}
		return f
	}
	shapedForA := objects.Node("n").Role("a").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "4")
	for _, tt := range []struct {
		name  string
		given []any
		when  func(*Cluster) Dirty
		nodes []string
		pools []string
		level []string
	}{
		{
			name:  "a node that joins a pool is to be shaped, and only its pool has news",
			given: []any{a, b},
			when:  func(f *Cluster) Dirty { return f.SetNode(objects.Node("n").Role("a").Obj()) },
			nodes: []string{"n"}, pools: []string{"a"},
		},
		{
			name:  "S0.9: a node that moves concerns the pool it left and the one it joined, and no third",
			given: []any{a, b, objects.Pool("c"), shapedForA},
			when: func(f *Cluster) Dirty {
				return f.SetNode(objects.Node("n").Role("b").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "4").Obj())
			},
			nodes: []string{"n"}, pools: []string{"a", "b"},
		},
		{
			name:  "a heartbeat concerns nobody",
			given: []any{a, shapedForA},
			when:  func(f *Cluster) Dirty { return f.SetNode(shapedForA.Obj()) },
		},
		{
			name:  "a node that ceases to be ready concerns its pool",
			given: []any{a, shapedForA},
			when: func(f *Cluster) Dirty {
				return f.SetNode(objects.Node("n").Role("a").LabelOf("a", "of", "a").Capacity(corev1.ResourceCPU, "4").Obj())
			},
			pools: []string{"a"},
		},
		{
			name:  "more allocatable is only a matter of level",
			given: []any{a, shapedForA},
			when: func(f *Cluster) Dirty {
				return f.SetNode(objects.Node("n").Role("a").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "8").Obj())
			},
			level: []string{"a"},
		},
		{
			name:  "a pod is only a matter of level, of its node's pools",
			given: []any{a, b, shapedForA},
			when:  func(f *Cluster) Dirty { return f.SetPod(objects.Pod("p").On("n").Requests("1", "1Gi").Obj()) },
			level: []string{"a"},
		},
		{
			name:  "a pod whose status changes but not its requests concerns nobody",
			given: []any{a, shapedForA, objects.Pod("p").On("n").Requests("1", "1Gi")},
			when: func(f *Cluster) Dirty {
				return f.SetPod(objects.Pod("p").On("n").Requests("1", "1Gi").Phase(corev1.PodRunning).Obj())
			},
		},
		{
			name:  "a pod that is not bound concerns nobody",
			given: []any{a, shapedForA},
			when:  func(f *Cluster) Dirty { return f.SetPod(objects.Pod("p").Requests("1", "1Gi").Obj()) },
		},
		{
			name:  "a changed spec concerns the pool and its nodes",
			given: []any{a, b, shapedForA, objects.Node("other").Role("b").LabelOf("b", "of", "b")},
			when: func(f *Cluster) Dirty {
				pool := objects.Pool("a").Labels("of", "x").Obj()
				pool.Generation = 2
				return f.SetPool(pool)
			},
			nodes: []string{"n"}, pools: []string{"a"},
		},
		{
			name:  "a written status concerns nobody's nodes",
			given: []any{a, shapedForA},
			when: func(f *Cluster) Dirty {
				pool := a.Obj()
				pool.Status.NodeCount = 7
				return f.SetPool(pool)
			},
			pools: []string{"a"},
		},
		{
			name:  "a pool that is gone lets go of its nodes, and the next one takes over",
			given: []any{objects.Pool("old").MatchLabels("z", "1").Labels("of", "old"), objects.Pool("new").CreatedAt(1).MatchLabels("z", "1").Labels("of", "new"), objects.Node("n").Label("z", "1").Label("of", "old")},
			when:  func(f *Cluster) Dirty { return f.DeletePool("old") },
			nodes: []string{"n"}, pools: []string{"old", "new"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.when(build(tt.given...))
			want := Dirty{sets.New(tt.nodes...), sets.New(tt.pools...), sets.New(tt.level...)}
			got.Levels = got.Levels.Difference(got.Pools)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Dirty{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("to be looked at (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFleetEverything: a controller that starts late is given all there is.
func TestFleetEverything(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Labels("of", "a").Obj())
	f.SetNode(objects.Node("right").Role("a").LabelOf("a", "of", "a").Obj())
	f.SetNode(objects.Node("wrong").Role("a").Obj())
	got := f.AllKeys()
	want := Dirty{sets.New("wrong"), sets.New("a"), nil}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Dirty{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

// TestFleetWriting: while a node is being written to, no pool that had a say
// in it is seen as clean; afterwards they are looked at again.
func TestFleetWriting(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Labels("of", "a").Obj())
	node := objects.Node("n").Role("a").Obj()
	f.SetNode(node)
	_, end1 := f.BeginWrite(node)
	_, end2 := f.BeginWrite(node)
	if v, _ := f.Pool("a"); !v.Writing {
		t.Error("not seen as writing during a write")
	}
	if again := end1(); again.Levels.Has("a") {
		t.Error("looked at again before the last write is over")
	}
	if again := end2(); !again.Levels.Has("a") {
		t.Error("not looked at again after the last write")
	}
	if v, _ := f.Pool("a"); v.Writing {
		t.Error("seen as writing after the last write")
	}
}

// TestFleetTells: joining and leaving is news for the leader only, and what
// happened before is told as far as the records show it.
func TestFleetTells(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Labels("of", "a").Obj())
	f.SetNode(objects.Node("long-there").Role("a").LabelOf("a", "of", "a").Obj())
	f.SetNode(objects.Node("new").Role("a").Obj())
	f.SetNode(objects.Node("gone").LabelOf("a", "of", "a").Obj())
	f.StartRecording()
	f.SetNode(objects.Node("live").Role("a").Obj())
	f.DeleteNode("long-there")

	news := f.pools["a"].events
	if diff := cmp.Diff([]string{"live", "new"}, sets.List(news.joined)); diff != "" {
		t.Errorf("joined (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gone", "long-there"}, sets.List(news.left)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestFleetAdmission: a node that was let through waits again if the taint is
// taken off it later.
func TestFleetAdmission(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Taint("out", "", corev1.TaintEffectNoExecute).Obj())
	bare := objects.Node("n").Role("a").Obj()
	if answer := f.SetNode(bare); answer.Nodes.Has("n") {
		t.Error("a NoExecute taint goes onto a node that was not admitted")
	}
	if answer := f.AllowEvictions("a", []string{"n", "unknown"}); !answer.Nodes.Has("n") {
		t.Error("an admitted node is not queued")
	}
	f.SetNode(objects.Node("n").Role("a").TaintOf("a", "out", "", corev1.TaintEffectNoExecute).Obj())
	if answer := f.SetNode(bare); answer.Nodes.Has("n") {
		t.Error("a node that lost its NoExecute taint gets it back without waiting for its turn")
	}
	if got := slices.Collect(maps.Keys(f.pools["a"].evictionPending)); len(got) != 1 {
		t.Errorf("held back: %v, want n", got)
	}
}
