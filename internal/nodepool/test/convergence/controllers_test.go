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

// do reconciles a node or pool, and reports whether the controller wrote anything.
func (w *world) do(t *rapid.T, item work, mayEvict bool) bool {
	if item.node != "" {
		return w.doNode(t, w.nodes[item.node], mayEvict)
	}
	if pool, ok := w.pools[item.pool]; ok {
		return w.doPool(t, pool)
	}
	return false
}

// doPool simulates a reconcile of the pool controller, which writes first the finalizer, then the
// managed keys. Once no node has settings of a deleted pool, it removes the pool's finalizer.
func (w *world) doPool(t *rapid.T, pool *tidekeeperv1.NodePool) bool {
	held := map[setting.Key]bool{}
	for _, node := range w.nodes {
		for s := range w.record(t, node)[pool.Name] {
			held[s] = true
		}
	}
	switch {
	case pool.DeletionTimestamp != nil && len(held) == 0:
		delete(w.pools, pool.Name)
		return true
	case pool.DeletionTimestamp == nil && len(pool.Finalizers) == 0:
		pool.Finalizers = []string{tidekeeperv1.NodePoolFinalizer}
		return true
	}
	m := objects.PoolFrom(pool).ManagingNothing()
	asked := map[setting.Key]bool{}
	for s := range setting.Desired(pool) {
		asked[s] = true
	}
	for _, s := range contestedKeys {
		if asked[s] || held[s] && setting.Manages(pool, s) {
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
func (w *world) poolsOn(t *rapid.T, node *corev1.Node, mayEvict bool) []plan.PoolOnNode {
	recorded := w.record(t, node)
	pools := []plan.PoolOnNode{}
	for _, pool := range w.pools {
		selector, err := plan.Selector(pool)
		if err != nil {
			t.Fatalf("pool %s: %v", pool.Name, err)
		}
		selects := selector.Matches(labels.Set(node.Labels))
		if _, ok := recorded[pool.Name]; selects || ok {
			pools = append(pools, plan.PoolOnNode{Pool: pool, Member: selects && pool.DeletionTimestamp == nil, MayEvict: mayEvict})
		}
	}
	return pools
}

// doNode simulates a reconcile of the node controller, and checks the resulting write.
func (w *world) doNode(t *rapid.T, node *corev1.Node, mayEvict bool) bool {
	pools := w.poolsOn(t, node, mayEvict)
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
		if s.IsNoExecute() && !mayEvict {
			t.Fatalf("%s is put on node %s out of turn", s, node.Name)
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
			mayEvict := !crashes || rapid.Bool().Draw(t, how+": may evict")
			if w.do(t, item, mayEvict) {
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
