// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// truth is what a fleet was told, for recounting.
type truth struct {
	pools map[string]*tidekeeperv1.NodePool
	nodes map[string]*corev1.Node
	pods  map[types.UID]*corev1.Pod
}

// recount builds a fleet from nothing but the present state of the truth,
// pools first.
func (w *truth) recount(admitted map[string]sets.Set[string]) *fleet {
	f := newFleet()
	for _, p := range w.pools {
		f.setPool(p)
	}
	for _, n := range w.nodes {
		f.setNode(n)
	}
	for _, p := range w.pods {
		f.setPod(p)
	}
	for pool, nodes := range admitted {
		f.admit(pool, nodes.UnsortedList())
	}
	return f
}

// TestFleetEqualsRecount: whatever happened in whatever order, the fleet knows
// just what it would know if it were built anew from what there is.
func TestFleetEqualsRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet()
		w := &truth{map[string]*tidekeeperv1.NodePool{}, map[string]*corev1.Node{}, map[types.UID]*corev1.Pod{}}
		poolNames := rapid.SampledFrom([]string{"a", "b", "c"})
		nodeNames := rapid.SampledFrom([]string{"n0", "n1", "n2", "n3"})
		podNames := rapid.SampledFrom([]string{"p0", "p1", "p2", "p3", "p4", "p5"})
		amounts := rapid.SampledFrom([]string{"", "0", "100m", "1", "3", "250Mi"})
		values := rapid.SampledFrom([]string{"1", "2"})

		t.Repeat(map[string]func(*rapid.T){
			"pool": func(t *rapid.T) {
				p := MakePool(poolNames.Draw(t, "pool")).CreatedAt(rapid.IntRange(0, 1).Draw(t, "age"))
				switch rapid.IntRange(0, 2).Draw(t, "selector") {
				case 1:
					p.MatchLabels("zone", values.Draw(t, "zone"))
				case 2:
					p.MatchLabels("size", values.Draw(t, "size"))
				}
				if rapid.Bool().Draw(t, "labels") {
					p.Labels("shared", values.Draw(t, "value"))
				}
				if rapid.Bool().Draw(t, "taints") {
					p.Taint("out", values.Draw(t, "value"), corev1.TaintEffectNoExecute)
				}
				if rapid.Bool().Draw(t, "not vouching") {
					p.NotVouching()
				}
				if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
					p.Deleted()
				}
				pool := p.Obj()
				if old := w.pools[pool.Name]; old != nil {
					pool.Generation = old.Generation + 1
				}
				w.pools[pool.Name] = pool
				f.setPool(pool)
			},
			"pool changed by its controller": func(t *rapid.T) {
				// Neither the finalizer nor the status is a new generation.
				pool := w.pools[poolNames.Draw(t, "pool")]
				if pool == nil {
					t.Skip("no such pool")
				}
				pool = pool.DeepCopy()
				pool.Finalizers, pool.Status.Managed.Labels = nil, nil
				if rapid.Bool().Draw(t, "finalizer") {
					pool.Finalizers = []string{tidekeeperv1.NodePoolFinalizer}
				}
				if rapid.Bool().Draw(t, "vouching") {
					pool.Status.Managed.Labels = []string{"shared"}
				}
				w.pools[pool.Name] = pool
				f.setPool(pool)
			},
			"pool gone": func(t *rapid.T) {
				name := poolNames.Draw(t, "pool")
				delete(w.pools, name)
				f.deletePool(name)
			},
			"pool again": func(t *rapid.T) {
				// Deleted and made anew under the same name, seen as one change.
				name := poolNames.Draw(t, "pool")
				pool := MakePool(name).MatchLabels("zone", values.Draw(t, "zone")).Obj()
				pool.UID = types.UID(rapid.StringN(4, 4, -1).Draw(t, "uid"))
				w.pools[name] = pool
				f.setPool(pool)
			},
			"node": func(t *rapid.T) {
				n := MakeNode(nodeNames.Draw(t, "node"))
				if rapid.Bool().Draw(t, "role") {
					n.Role(poolNames.Draw(t, "role of"))
				}
				if rapid.Bool().Draw(t, "zone") {
					n.Label("zone", values.Draw(t, "zone value"))
				}
				if rapid.Bool().Draw(t, "size") {
					n.Label("size", values.Draw(t, "size value"))
				}
				if rapid.Bool().Draw(t, "something of a pool") {
					n.LabelOf(poolNames.Draw(t, "whose"), "shared", values.Draw(t, "value"))
				}
				if rapid.Bool().Draw(t, "ready") {
					n.Ready(corev1.ConditionTrue)
				}
				for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
					if amount := amounts.Draw(t, "amount"); amount != "" {
						n.Capacity(resource, amount)
					}
				}
				node := n.Obj()
				w.nodes[node.Name] = node
				f.setNode(node)
			},
			"node carried out": func(t *rapid.T) {
				node := w.nodes[nodeNames.Draw(t, "node")]
				if node == nil {
					t.Skip("no such node")
				}
				plan, end := f.begin(node)
				node = applied(t, node, &plan)
				end()
				w.nodes[node.Name] = node
				f.setNode(node)
			},
			"node gone": func(t *rapid.T) {
				name := nodeNames.Draw(t, "node")
				delete(w.nodes, name)
				f.deleteNode(name)
			},
			"pod": func(t *rapid.T) {
				p := MakePod(podNames.Draw(t, "pod")).Requests(amounts.Draw(t, "cpu"), amounts.Draw(t, "memory"))
				if rapid.IntRange(0, 4).Draw(t, "bound") > 0 {
					p.On(nodeNames.Draw(t, "on"))
				}
				p.Phase(rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}).Draw(t, "phase"))
				pod := p.Obj()
				w.pods[pod.UID] = pod
				f.setPod(pod)
			},
			"pod again": func(t *rapid.T) {
				pod := w.pods[types.UID("pod-"+podNames.Draw(t, "pod"))]
				if pod == nil {
					t.Skip("no such pod")
				}
				f.setPod(pod.DeepCopy())
			},
			"pod gone": func(t *rapid.T) {
				uid := types.UID("pod-" + podNames.Draw(t, "pod"))
				delete(w.pods, uid)
				f.deletePod(uid)
			},
			"admit": func(t *rapid.T) {
				f.admit(poolNames.Draw(t, "pool"), []string{nodeNames.Draw(t, "node")})
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(snapshot(w.recount(admissions(f))), snapshot(f), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the running model (+) is not the recount (-):\n%s", diff)
				}
				checkMemory(t, f, w)
			},
		})
	})
}

// applied returns the node with the plan carried out, as the API server would.
func applied(t *rapid.T, node *corev1.Node, plan *nodePlan) *corev1.Node {
	if plan.empty() {
		return node
	}
	after, err := applyMergePatch(node, plan.patch(node, poolEpoch))
	if err != nil {
		t.Fatalf("apply the patch: %v", err)
	}
	return after
}

func admissions(f *fleet) map[string]sets.Set[string] {
	all := map[string]sets.Set[string]{}
	for name, p := range f.pools {
		all[name] = p.admitted.Clone()
	}
	return all
}

// snapshot is all that a fleet knows, in a form that can be compared: numbers
// of resources depend on which was seen first.
func snapshot(f *fleet) map[string]any {
	all := map[string]any{}
	for name, p := range f.pools {
		v, _ := f.view(name)
		all["pool "+name] = map[string]any{
			"members": sets.List(p.members), "unshaped": sets.List(p.unshaped), "held back": sets.List(p.heldBack),
			"admitted":  sets.List(p.admitted),
			"conflicts": fmt.Sprint(p.conflicts), "ready": v.ready, "nodes": v.nodes,
			"capacity": v.capacity, "allocatable": v.allocatable, "requested": v.requested, "percent": v.percent,
			"carriers": v.carriers, "held": v.held, "writing": v.writing,
		}
	}
	for name, n := range f.nodes {
		var pools []string
		for _, p := range n.pools {
			pools = append(pools, p.object.Name)
		}
		slices.Sort(pools)
		all["node "+name] = map[string]any{
			"pools": pools, "ready": n.ready, "pods": n.pods, "requested": f.registry.list(n.requested),
			"outdated": n.outlook.due, "known": n.object != nil,
		}
	}
	all["pods"] = len(f.pods)
	for pool, t := range f.traces {
		all["trace "+pool] = map[string]any{"nodes": sets.List(t.nodes), "slots": fmt.Sprint(len(t.slots))}
	}
	return all
}

// checkMemory: what is gone is not kept.
func checkMemory(t *rapid.T, f *fleet, w *truth) {
	users := 0
	for _, s := range f.shapes {
		users += s.users
	}
	if users != len(f.pods) {
		t.Fatalf("%d pods use %d shapes", len(f.pods), users)
	}
	for name, n := range f.nodes {
		if w.nodes[name] == nil && n.pods == 0 {
			t.Fatalf("node %s neither exists nor has pods, and is still kept", name)
		}
	}
}

// TestFleetAnswers: each change is answered with just what has to be looked at.
func TestFleetAnswers(t *testing.T) {
	a, b := MakePool("a").Labels("of", "a"), MakePool("b").Labels("of", "b")
	build := func(objects ...any) *fleet {
		f := newFleet()
		for _, o := range objects {
			switch o := o.(type) {
			case *PoolMaker:
				f.setPool(o.Obj())
			case *NodeMaker:
				f.setNode(o.Obj())
			case *PodMaker:
				f.setPod(o.Obj())
			}
		}
		return f
	}
	shapedForA := MakeNode("n").Role("a").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "4")
	for _, tt := range []struct {
		name  string
		given []any
		when  func(*fleet) todo
		nodes []string
		pools []string
		level []string
	}{
		{
			name:  "a node that joins a pool is to be shaped, and only its pool has news",
			given: []any{a, b},
			when:  func(f *fleet) todo { return f.setNode(MakeNode("n").Role("a").Obj()) },
			nodes: []string{"n"}, pools: []string{"a"},
		},
		{
			name:  "S0.9: a node that moves concerns the pool it left and the one it joined, and no third",
			given: []any{a, b, MakePool("c"), shapedForA},
			when: func(f *fleet) todo {
				return f.setNode(MakeNode("n").Role("b").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "4").Obj())
			},
			nodes: []string{"n"}, pools: []string{"a", "b"},
		},
		{
			name:  "a heartbeat concerns nobody",
			given: []any{a, shapedForA},
			when:  func(f *fleet) todo { return f.setNode(shapedForA.Obj()) },
		},
		{
			name:  "a node that ceases to be ready concerns its pool",
			given: []any{a, shapedForA},
			when: func(f *fleet) todo {
				return f.setNode(MakeNode("n").Role("a").LabelOf("a", "of", "a").Capacity(corev1.ResourceCPU, "4").Obj())
			},
			pools: []string{"a"},
		},
		{
			name:  "more allocatable is only a matter of level",
			given: []any{a, shapedForA},
			when: func(f *fleet) todo {
				return f.setNode(MakeNode("n").Role("a").LabelOf("a", "of", "a").Ready(corev1.ConditionTrue).Capacity(corev1.ResourceCPU, "8").Obj())
			},
			level: []string{"a"},
		},
		{
			name:  "a pod is only a matter of level, of its node's pools",
			given: []any{a, b, shapedForA},
			when:  func(f *fleet) todo { return f.setPod(MakePod("p").On("n").Requests("1", "1Gi").Obj()) },
			level: []string{"a"},
		},
		{
			name:  "a pod whose status changes but not its requests concerns nobody",
			given: []any{a, shapedForA, MakePod("p").On("n").Requests("1", "1Gi")},
			when: func(f *fleet) todo {
				return f.setPod(MakePod("p").On("n").Requests("1", "1Gi").Phase(corev1.PodRunning).Obj())
			},
		},
		{
			name:  "a pod that is not bound concerns nobody",
			given: []any{a, shapedForA},
			when:  func(f *fleet) todo { return f.setPod(MakePod("p").Requests("1", "1Gi").Obj()) },
		},
		{
			name:  "a changed spec concerns the pool and its nodes",
			given: []any{a, b, shapedForA, MakeNode("other").Role("b").LabelOf("b", "of", "b")},
			when: func(f *fleet) todo {
				pool := MakePool("a").Labels("of", "x").Obj()
				pool.Generation = 2
				return f.setPool(pool)
			},
			nodes: []string{"n"}, pools: []string{"a"},
		},
		{
			name:  "a written status concerns nobody's nodes",
			given: []any{a, shapedForA},
			when: func(f *fleet) todo {
				pool := a.Obj()
				pool.Status.NodeCount = 7
				return f.setPool(pool)
			},
			pools: []string{"a"},
		},
		{
			name:  "a pool that is gone lets go of its nodes, and the next one takes over",
			given: []any{MakePool("old").MatchLabels("z", "1").Labels("of", "old"), MakePool("new").CreatedAt(1).MatchLabels("z", "1").Labels("of", "new"), MakeNode("n").Label("z", "1").Label("of", "old")},
			when:  func(f *fleet) todo { return f.deletePool("old") },
			nodes: []string{"n"}, pools: []string{"old", "new"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.when(build(tt.given...))
			want := todo{sets.New(tt.nodes...), sets.New(tt.pools...), sets.New(tt.level...)}
			got.levels = got.levels.Difference(got.pools)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(todo{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("to be looked at (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFleetEverything: a controller that starts late is given all there is.
func TestFleetEverything(t *testing.T) {
	f := newFleet()
	f.setPool(MakePool("a").Labels("of", "a").Obj())
	f.setNode(MakeNode("right").Role("a").LabelOf("a", "of", "a").Obj())
	f.setNode(MakeNode("wrong").Role("a").Obj())
	got := f.everything()
	want := todo{sets.New("wrong"), sets.New("a"), nil}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(todo{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

// TestFleetWriting: while a node is being written to, no pool that had a say
// in it is seen as clean; afterwards they are looked at again.
func TestFleetWriting(t *testing.T) {
	f := newFleet()
	f.setPool(MakePool("a").Labels("of", "a").Obj())
	node := MakeNode("n").Role("a").Obj()
	f.setNode(node)
	_, end1 := f.begin(node)
	_, end2 := f.begin(node)
	if v, _ := f.view("a"); !v.writing {
		t.Error("not seen as writing during a write")
	}
	if again := end1(); again.levels.Has("a") {
		t.Error("looked at again before the last write is over")
	}
	if again := end2(); !again.levels.Has("a") {
		t.Error("not looked at again after the last write")
	}
	if v, _ := f.view("a"); v.writing {
		t.Error("seen as writing after the last write")
	}
}

// TestFleetTells: joining and leaving is news for the leader only, and what
// happened before is told as far as the records show it.
func TestFleetTells(t *testing.T) {
	f := newFleet()
	f.setPool(MakePool("a").Labels("of", "a").Obj())
	f.setNode(MakeNode("long-there").Role("a").LabelOf("a", "of", "a").Obj())
	f.setNode(MakeNode("new").Role("a").Obj())
	f.setNode(MakeNode("gone").LabelOf("a", "of", "a").Obj())
	f.tell()
	f.setNode(MakeNode("live").Role("a").Obj())
	f.deleteNode("long-there")

	news := f.pools["a"].news
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
	f := newFleet()
	f.setPool(MakePool("a").Taint("out", "", corev1.TaintEffectNoExecute).Obj())
	bare := MakeNode("n").Role("a").Obj()
	if answer := f.setNode(bare); answer.nodes.Has("n") {
		t.Error("a NoExecute taint goes onto a node that was not admitted")
	}
	if answer := f.admit("a", []string{"n", "unknown"}); !answer.nodes.Has("n") {
		t.Error("an admitted node is not queued")
	}
	f.setNode(MakeNode("n").Role("a").TaintOf("a", "out", "", corev1.TaintEffectNoExecute).Obj())
	if answer := f.setNode(bare); answer.nodes.Has("n") {
		t.Error("a node that lost its NoExecute taint gets it back without waiting for its turn")
	}
	if got := slices.Collect(maps.Keys(f.pools["a"].heldBack)); len(got) != 1 {
		t.Errorf("held back: %v, want n", got)
	}
}

// applyMergePatch returns the node with a JSON merge patch applied.
func applyMergePatch(node *corev1.Node, patch []byte) (*corev1.Node, error) {
	before, err := json.Marshal(node)
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, err
	}
	after := &corev1.Node{}
	return after, json.Unmarshal(merged, after)
}
