// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// EmptyingProgress is the latest progress of a node that is being emptied within budgets.
type EmptyingProgress struct {
	// Left is the number of pods that still have to leave the node.
	Left int
	// Pod is the namespace and name of a pod that keeps the node from being emptied, and Because is
	// the reason. Both are empty if no pod is known to do so.
	Pod, Because string
	// BlockedSince is the time of the last accepted eviction or other progress, if the node counts
	// as blocked for lack of progress since then. It is zero otherwise.
	BlockedSince time.Time
}

// Emptying contains the model's methods for nodes that are being emptied, that is, whose pods are
// evicted within PodDisruptionBudgets before the nodes get NoExecute taints.
type Emptying struct{ *guarded }

// Taints returns the NoExecute taints for which a node is closed to new pods and is being emptied.
// It returns nil for other nodes.
func (e Emptying) Taints(name string) []plan.TaintBeingPrepared {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.graph.nodes[name]; n != nil {
		return n.summary.Emptying
	}
	return nil
}

// Nodes returns the sorted names of all nodes that are being emptied.
func (e Emptying) Nodes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := sets.New[string]()
	for _, p := range e.graph.pools {
		all = all.Union(p.emptying)
	}
	return sets.List(all)
}

// AllowTaints permits the pool to add its NoExecute taints with the eviction WithinBudgets to a
// node that has been emptied. It does nothing if the node is no longer being emptied for the pool.
func (e Emptying) AllowTaints(pool, name string) Dirty {
	return e.change(func(g *graph) {
		p, n := g.pools[pool], upToDate(g, name)
		if p != nil && n != nil && p.emptying.Has(name) && !p.turns.emptied.Has(name) {
			p.turns.emptied.Insert(name)
			g.planNode(n)
		}
	})
}

// WithdrawTaints revokes all pools' permissions to add NoExecute taints to a node, because the node
// has pods that the taints would delete, and queues the node.
func (e Emptying) WithdrawTaints(name string) Dirty {
	return e.change(func(g *graph) {
		withdraw(g, name)
		g.dirty.Emptying.Insert(name)
	})
}

// Record stores the progress of a node that is being emptied.
func (e Emptying) Record(name string, progress EmptyingProgress) Dirty {
	return e.change(func(g *graph) {
		n := g.nodes[name]
		if n == nil || n.emptying == progress {
			return
		}
		n.emptying = progress
		for _, p := range n.pools {
			if p.emptying.Has(name) {
				g.dirty.Pools.Insert(p.object.Name)
			}
		}
	})
}

// emptyingChanged queues a node whose pods may have changed, if the node is being emptied.
func (g *graph) emptyingChanged(n *node) {
	if len(n.summary.Emptying) > 0 {
		g.dirty.Emptying.Insert(n.name)
	}
}

// emptyingPlanned is called after a new plan for a node. It updates, in each affected pool, the set
// of nodes that are being emptied. before lists the taints for which the node was being emptied
// under the previous plan.
func (g *graph) emptyingPlanned(n *node, before []plan.TaintBeingPrepared) {
	if len(before) == 0 && len(n.summary.Emptying) == 0 {
		return
	}
	g.dirty.Emptying.Insert(n.name)
	if len(n.summary.Emptying) == 0 {
		n.emptying = EmptyingProgress{}
	}
	for _, t := range before {
		if p := g.pools[t.Pool]; p != nil {
			p.emptying.Delete(n.name)
			g.dirty.Pools.Insert(t.Pool)
		}
	}
	for _, t := range n.summary.Emptying {
		if p := g.pools[t.Pool]; p != nil {
			p.emptying.Insert(n.name)
			g.dirty.Pools.Insert(t.Pool)
		}
	}
}

// emptyingTaints returns the NoExecute taints for which the node is being emptied, and the latest
// time at which the node was closed to new pods for any of them.
func (n *node) emptyingTaints() (taints []corev1.Taint, since time.Time) {
	for _, t := range n.summary.Emptying {
		taints = append(taints, t.Taint)
		if t.Since.After(since) {
			since = t.Since
		}
	}
	return taints, since
}

// reportEmptying sets the snapshot's fields about nodes of the pool that are being emptied.
func (p *pool) reportEmptying(nodes map[string]*node, v *PoolSnapshot) {
	v.Emptying = len(p.emptying)
	for _, name := range sets.List(p.emptying) {
		progress := nodes[name].emptying
		if progress.BlockedSince.IsZero() {
			continue
		}
		v.Blocked++
		since := metav1.NewTime(progress.BlockedSince.Truncate(time.Second))
		if v.LongestBlocked == nil || since.Before(&v.LongestBlocked.Since) {
			v.LongestBlocked = &tidekeeperv1.BlockedNode{
				Node: name, Since: since, Pods: int32(progress.Left), Pod: progress.Pod, Message: progress.Because,
			}
		}
	}
}

// sinceLastEviction returns the latest time at which a pool began to evict pods from the node, or
// zero if no pool has. A taint that was added after the node had been emptied counts only if
// `affected` reports that the taint evicts pods nevertheless.
func (n *node) sinceLastEviction(affected func([]corev1.Taint) bool) time.Time {
	taints := slices.DeleteFunc(n.evictingTaints(), func(on corev1.Taint) bool {
		gentle := !slices.ContainsFunc(n.pools, func(p *pool) bool {
			t := plan.TaintOf(p.object, &on)
			return t != nil && t.Eviction != tidekeeperv1.TaintEvictionWithinBudgets
		})
		return gentle && !affected([]corev1.Taint{on})
	})
	last := plan.LatestTaint(taints)
	if _, since := n.emptyingTaints(); since.After(last) {
		return since
	}
	return last
}
