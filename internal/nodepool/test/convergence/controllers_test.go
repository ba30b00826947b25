// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// work identifies a node or a pool to be reconciled by the simulated controllers. Each reconcile
// writes at most once.
type work struct{ node, pool string }

// allWork returns all nodes and pools, which are the initial content of the controllers' queues.
func (w *world) allWork() []work {
	all := []work{}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		all = append(all, work{node: name})
	}
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		all = append(all, work{pool: name})
	}
	return all
}

// permissions holds a pool's permissions for a node that are not stored in objects: mayEvict is
// true if it is the node's turn, and emptied is true if NoExecute taints would delete no pod on the
// node.
type permissions struct{ mayEvict, emptied bool }

// drawPermissions returns random permissions.
func drawPermissions(t *rapid.T, label string) permissions {
	return permissions{rapid.Bool().Draw(t, label+"may evict"), rapid.Bool().Draw(t, label+"emptied")}
}

// do reconciles a node or pool, and reports whether the controller wrote anything.
func (w *world) do(t *rapid.T, item work, may permissions) bool {
	if item.node != "" {
		return w.doNode(t, w.nodes[item.node], may)
	}
	if pool, ok := w.pools[item.pool]; ok {
		return w.doPool(t, pool)
	}
	return false
}

// doPool simulates a reconcile of the pool controller, which writes first the finalizer, then the
// managed keys. Once no node has settings of a deleted pool, it removes the pool's finalizer.
func (w *world) doPool(t *rapid.T, pool *tidekeeperv1.NodePool) bool {
	held, named := map[setting.Key]bool{}, false
	for _, node := range w.nodes {
		recorded, on := w.record(t, node)[pool.Name]
		named = named || on
		for s := range recorded {
			held[s] = true
		}
	}
	switch {
	case pool.DeletionTimestamp != nil && !named:
		delete(w.pools, pool.Name)
		return true
	case pool.DeletionTimestamp == nil && len(pool.Finalizers) == 0:
		pool.Finalizers = []string{tidekeeperv1.NodePoolFinalizer}
		return true
	}
	m := objects.PoolFrom(pool).ManagingNothing()
	asked := plan.WantedKeys(pool)
	for _, s := range contestedKeys {
		if asked.Has(s) || held[s] && setting.Manages(pool, s) {
			m.Managing(s)
		}
	}
	managed := m.Obj().Status.Managed
	if cmp.Equal(managed, pool.Status.Managed) {
		return false
	}
	pool.Status.Managed = managed
	return true
}

func (w *world) record(t *rapid.T, node *corev1.Node) ownership.Record {
	r, err := ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation])
	if err != nil {
		t.Fatalf("node %s: %v", node.Name, err)
	}
	return r
}

// poolsOn returns the pools that select the node, and the pools named in the node's ownership
// annotation.
func (w *world) poolsOn(t *rapid.T, node *corev1.Node, may permissions) []plan.PoolOnNode {
	recorded := w.record(t, node)
	pools := []plan.PoolOnNode{}
	for _, pool := range w.pools {
		selector, err := plan.Selector(pool)
		if err != nil {
			t.Fatalf("pool %s: %v", pool.Name, err)
		}
		selects := selector.Matches(labels.Set(node.Labels))
		if _, ok := recorded[pool.Name]; selects || ok {
			pools = append(pools, plan.PoolOnNode{
				Pool: pool, Member: selects && pool.DeletionTimestamp == nil, MayEvict: may.mayEvict, TurnAt: objects.PatchTime, Emptied: may.emptied,
			})
		}
	}
	return pools
}

// doNode simulates a reconcile of the node controller, and checks the resulting write.
func (w *world) doNode(t *rapid.T, node *corev1.Node, may permissions) bool {
	pools := w.poolsOn(t, node, may)
	nodePlan := plan.ForNode(node, pools)
	if nodePlan.Empty() {
		return false
	}
	w.tick++
	for s, value := range nodePlan.Set {
		owner := slices.IndexFunc(pools, func(c plan.PoolOnNode) bool { _, ok := nodePlan.Ownership[c.Pool.Name][s]; return ok })
		if owner < 0 || !pools[owner].Member || len(pools[owner].Pool.Finalizers) == 0 || !setting.Manages(pools[owner].Pool, s) {
			t.Fatalf("%s of node %s is written, but for no pool that may write it; record: %s", s, node.Name, nodePlan.Ownership)
		}
		if s.IsNoExecute() {
			checkTurn(t, pools[owner].Pool, node, s, may)
		}
		at := place{node.Name, s}
		w.byPool[at] = written{w.tick, value}
		w.owners[at] = append(w.owners[at], pools[owner].Pool)
	}
	after := objects.ApplyPlan(t, &nodePlan, node)
	if again := plan.ForNode(after, pools); !again.Empty() || len(again.Changes) > 0 {
		t.Fatalf("after the plan, there is more to write: %s, then %s", nodePlan.Patch(node, objects.PatchTime), again.Patch(after, objects.PatchTime))
	}
	w.nodes[node.Name] = after
	return true
}

// checkTurn checks that the pool may add a NoExecute taint to the node, because it is the node's
// turn, or because the node was closed and has been emptied.
func checkTurn(t *rapid.T, pool *tidekeeperv1.NodePool, node *corev1.Node, s setting.Key, may permissions) {
	i := slices.IndexFunc(pool.Spec.Taints, func(taint tidekeeperv1.Taint) bool { return setting.TaintKey(taint.Key, taint.Effect) == s })
	if pool.Spec.Taints[i].Eviction != tidekeeperv1.TaintEvictionWithinBudgets {
		if !may.mayEvict {
			t.Fatalf("%s is put on node %s out of turn", s, node.Name)
		}
		return
	}
	_, closed := ownership.ParseClosed(node.Annotations[tidekeeperv1.OwnershipAnnotation])[pool.Name][s.TaintKey()]
	if !may.emptied || !closed && !may.mayEvict {
		t.Fatalf("%s is put on node %s, which was closed: %t, with %+v", s, node.Name, closed, may)
	}
}

// settle runs the controllers until they have nothing left to do. In the first rounds, it kills the
// controllers at random points of their work.
func (w *world) settle(t *rapid.T, how string) {
	for round := range 30 {
		items := rapid.Permutation(w.allWork()).Draw(t, how+": order of work")
		crashes := round < 3
		if crashes {
			items = items[:rapid.IntRange(0, len(items)).Draw(t, how+": killed after")]
		}
		wrote := false
		for _, item := range items {
			may := permissions{true, true}
			if crashes {
				may = drawPermissions(t, how+": ")
			}
			if w.do(t, item, may) {
				wrote = true
				w.check(t)
			}
		}
		if !wrote && !crashes {
			return
		}
	}
	t.Fatal("the controllers never settle")
}
