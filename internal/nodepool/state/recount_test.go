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
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/load"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// truth holds the objects that a model has been given, so that a second model can be built from
// them.
type truth struct {
	pools map[string]*tidekeeperv1.NodePool
	nodes map[string]*corev1.Node
	pods  map[types.UID]*corev1.Pod
}

// recount builds a new model from the current objects, pools first. Permitted evictions and
// formerly managed keys cannot be derived from objects, so they are copied from the model `like`.
func (w *truth) recount(like *Cluster) *Cluster {
	f := NewCluster()
	for _, key := range like.graph.formerKeys.order {
		f.graph.formerKeys.add(key.pool, key.key)
	}
	for _, p := range w.pools {
		f.SetPool(p)
	}
	for _, n := range w.nodes {
		f.SetNode(n)
	}
	for _, p := range w.pods {
		f.SetPod(p)
	}
	for pool, p := range like.graph.pools {
		f.AllowEvictions(pool, slices.Collect(maps.Keys(p.turns.allowed)), p.turns.emptied, objects.PatchTime)
		for node := range p.turns.emptied {
			f.Emptying.AllowTaints(pool, node)
		}
	}
	return f
}

// TestClusterEqualsRecount checks that, after any events in any order, the model equals a new model
// built from the current objects.
func TestClusterEqualsRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewCluster()
		f.graph.backlog.atOnce = rapid.SampledFrom([]int{1, 2, plannedAtOnce}).Draw(t, "planned at once")
		w := &truth{map[string]*tidekeeperv1.NodePool{}, map[string]*corev1.Node{}, map[types.UID]*corev1.Pod{}}
		poolNames := rapid.SampledFrom([]string{"a", "b", "c"})
		nodeNames := rapid.SampledFrom([]string{"n0", "n1", "n2", "n3"})
		podNames := rapid.SampledFrom([]string{"p0", "p1", "p2", "p3", "p4", "p5"})
		amounts := rapid.SampledFrom([]string{"", "0", "100m", "1", "3", "250Mi"})
		values := rapid.SampledFrom([]string{"1", "2"})
		version := 0
		// put passes a new version of a pool to the model, as the informer does.
		put := func(pool *tidekeeperv1.NodePool) {
			version++
			pool.ResourceVersion = fmt.Sprint(version)
			w.pools[pool.Name] = pool
			f.SetPool(pool)
		}

		t.Repeat(map[string]func(*rapid.T){
			"pool": func(t *rapid.T) {
				p := objects.Pool(poolNames.Draw(t, "pool")).CreatedAt(rapid.IntRange(0, 1).Draw(t, "age"))
				switch rapid.IntRange(0, 2).Draw(t, "selector") {
				case 1:
					p.MatchLabels("zone", values.Draw(t, "zone"))
				case 2:
					p.MatchLabels("size", values.Draw(t, "size"))
				}
				if rapid.Bool().Draw(t, "labels") {
					p.Labels("shared", values.Draw(t, "value"))
				}
				switch rapid.IntRange(0, 2).Draw(t, "taints") {
				case 1:
					p.Taint("out", values.Draw(t, "value"), corev1.TaintEffectNoExecute)
				case 2:
					p.TaintWithinBudgets("out", values.Draw(t, "value"))
				}
				if rapid.Bool().Draw(t, "manages nothing") {
					p.ManagingNothing()
				}
				if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
					p.Deleted()
				}
				pool := p.Obj()
				if old := w.pools[pool.Name]; old != nil {
					pool.Generation = old.Generation + 1
				}
				put(pool)
			},
			"pool changed by its controller": func(t *rapid.T) {
				// Changes to the finalizer or the status do not change the generation.
				pool := w.pools[poolNames.Draw(t, "pool")]
				if pool == nil {
					t.Skip("no such pool")
				}
				old := pool
				pool = pool.DeepCopy()
				pool.Finalizers, pool.Status.Managed.Labels = nil, nil
				if rapid.Bool().Draw(t, "finalizer") {
					pool.Finalizers = []string{tidekeeperv1.NodePoolFinalizer}
				}
				if rapid.Bool().Draw(t, "manages") {
					pool.Status.Managed.Labels = []string{"shared"}
				}
				if rapid.Bool().Draw(t, "the answer comes first") {
					// The informer delivers an older version after PoolWritten received the API
					// server's response.
					pool.ResourceVersion = fmt.Sprint(version + 1)
					f.PoolWritten(pool, time.Time{})
					f.SetPool(old)
					if f.graph.pools[pool.Name].object.ResourceVersion != pool.ResourceVersion {
						t.Fatal("an older version took the place of the answer")
					}
				}
				put(pool)
			},
			"pool gone": func(t *rapid.T) {
				name := poolNames.Draw(t, "pool")
				delete(w.pools, name)
				f.DeletePool(name)
			},
			"pool again": func(t *rapid.T) {
				// The pool is deleted and created again, but the informer delivers a single update.
				name := poolNames.Draw(t, "pool")
				pool := objects.Pool(name).MatchLabels("zone", values.Draw(t, "zone")).Obj()
				pool.UID = types.UID(rapid.StringN(4, 4, -1).Draw(t, "uid"))
				put(pool)
			},
			"node": func(t *rapid.T) {
				n := objects.Node(nodeNames.Draw(t, "node"))
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
				for _, taint := range []string{"out", "other"} {
					if rapid.IntRange(0, 3).Draw(t, "tainted "+taint) == 0 {
						n.Taint(taint, values.Draw(t, "value"), rapid.SampledFrom([]corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}).Draw(t, "effect"))
					}
				}
				if rapid.Bool().Draw(t, "takes pods") {
					n.Allocatable(corev1.ResourcePods, rapid.SampledFrom([]string{"0", "1", "10"}).Draw(t, "pods"))
				}
				for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/x"} {
					if amount := amounts.Draw(t, "amount"); amount != "" {
						if rapid.Bool().Draw(t, "for pods") {
							n.Allocatable(resource, amount)
						} else {
							n.Capacity(resource, amount)
						}
					}
				}
				node := n.Obj()
				node.Spec.Unschedulable = rapid.IntRange(0, 4).Draw(t, "cordoned") == 0
				if rapid.IntRange(0, 4).Draw(t, "node deleted") == 0 {
					node.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
				}
				w.nodes[node.Name] = node
				f.SetNode(node)
			},
			"node carried out": func(t *rapid.T) {
				node := w.nodes[nodeNames.Draw(t, "node")]
				if node == nil {
					t.Skip("no such node")
				}
				nodePlan, end := f.BeginWrite(node)
				node = applied(t, node, &nodePlan)
				end()
				w.nodes[node.Name] = node
				f.SetNode(node)
			},
			"node gone": func(t *rapid.T) {
				name := nodeNames.Draw(t, "node")
				delete(w.nodes, name)
				f.DeleteNode(name)
			},
			"pod": func(t *rapid.T) {
				p := objects.Pod(podNames.Draw(t, "pod")).Requests(amounts.Draw(t, "cpu"), amounts.Draw(t, "memory"))
				if rapid.IntRange(0, 4).Draw(t, "bound") > 0 {
					p.On(nodeNames.Draw(t, "on"))
				}
				p.Phase(rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}).Draw(t, "phase"))
				pod := p.Obj()
				for _, resource := range []corev1.ResourceName{"example.com/x", "invented.example.com/x"} {
					if rapid.Bool().Draw(t, string(resource)) {
						pod.Spec.Containers[0].Resources.Requests[resource] = *k8sresource.NewQuantity(rapid.Int64Range(0, 3).Draw(t, "of it"), k8sresource.DecimalSI)
					}
				}
				w.pods[pod.UID] = pod
				f.SetPod(pod)
			},
			"pod again": func(t *rapid.T) {
				pod := w.pods[types.UID("pod-"+podNames.Draw(t, "pod"))]
				if pod == nil {
					t.Skip("no such pod")
				}
				f.SetPod(pod.DeepCopy())
			},
			"pod gone": func(t *rapid.T) {
				uid := types.UID("pod-" + podNames.Draw(t, "pod"))
				delete(w.pods, uid)
				f.DeletePod(uid)
			},
			"allow evictions": func(t *rapid.T) {
				name := nodeNames.Draw(t, "node")
				emptied := sets.New[string]()
				if rapid.IntRange(0, 3).Draw(t, "no pod is affected") == 0 {
					emptied.Insert(name)
				}
				f.AllowEvictions(poolNames.Draw(t, "pool"), []string{name}, emptied, objects.PatchTime)
			},
			"allow taints": func(t *rapid.T) {
				f.Emptying.AllowTaints(poolNames.Draw(t, "pool"), nodeNames.Draw(t, "node"))
			},
			"withdraw": func(t *rapid.T) {
				f.Emptying.WithdrawTaints(nodeNames.Draw(t, "node"))
			},
			"plan more": func(*rapid.T) { f.Planning.More() },
			"": func(t *rapid.T) {
				if planning(f) {
					return
				}
				if diff := cmp.Diff(snapshot(w.recount(f)), snapshot(f), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the running model (+) differs from the recount (-):\n%s", diff)
				}
				checkMemory(t, f, w)
				checkRoom(t, f, w)
			},
		})
	})
}

// planning reports whether nodes wait for new plans.
func planning(f *Cluster) bool {
	for name := range f.graph.pools {
		if v, _ := f.Pool(name); v.Planning {
			return true
		}
	}
	return false
}

// applied returns the node as the API server stores it after applying the plan's patch.
func applied(t *rapid.T, node *corev1.Node, nodePlan *plan.NodePlan) *corev1.Node {
	if nodePlan.Empty() {
		return node
	}
	return objects.ApplyPlan(t, nodePlan, node)
}

func podCount(l *load.Load) (pods int) {
	for _, count := range l.Pods() {
		pods += count
	}
	return pods
}

// snapshot returns the state of a model in a form that can be compared.
func snapshot(f *Cluster) map[string]any {
	all := map[string]any{}
	for name, p := range f.graph.pools {
		v, _ := f.Pool(name)
		all["pool "+name] = map[string]any{
			"members": sets.List(p.members), "outdated": sets.List(p.plans.outdated), "pending": sets.List(p.turns.pending),
			"allowed": slices.Sorted(maps.Keys(p.turns.allowed)), "emptied": sets.List(p.turns.emptied),
			"emptying": sets.List(p.emptying), "being emptied": v.Emptying,
			"conflicts": fmt.Sprint(p.plans.conflicts), "ready": v.Ready, "nodes": v.Nodes,
			"capacity": v.Capacity, "allocatable": v.Allocatable, "requested": v.Requested, "percent": v.Percent,
			"owned nodes": v.OwnedNodes, "owned keys": v.OwnedKeys, "writing": v.Writing,
		}
	}
	for name, l := range f.graph.loads.All() {
		all["load "+name] = map[string]any{"pods": podCount(l), "requested": l.Requested().List()}
	}
	for name, n := range f.graph.nodes {
		var pools []string
		for _, p := range n.pools {
			pools = append(pools, p.object.Name)
		}
		slices.Sort(pools)
		all["node "+name] = map[string]any{
			"pools": pools, "ready": n.ready, "outdated": n.summary.NeedsWrite, "emptying": fmt.Sprint(n.summary.Emptying),
		}
	}
	for pool, o := range f.graph.owners {
		all["owner "+pool] = map[string]any{"nodes": sets.List(o.nodes), "keys": fmt.Sprint(len(o.keys))}
	}
	return all
}

// checkMemory checks that the model does not keep state of deleted objects.
func checkMemory(t *rapid.T, f *Cluster, w *truth) {
	for name := range f.graph.nodes {
		if w.nodes[name] == nil {
			t.Fatalf("node %s does not exist, but is still kept", name)
		}
	}
	for name, l := range f.graph.loads.All() {
		if w.nodes[name] == nil && podCount(l) == 0 {
			t.Fatalf("node %s neither exists nor has pods, but its load is still kept", name)
		}
	}
}
