// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// AllowEvictions permits the pool to add its NoExecute taints to the named nodes, or to close the
// nodes to new pods for these taints. emptied is the set of nodes from which the taints would evict
// no pods. These nodes need not be closed first.
func (c *Cluster) AllowEvictions(pool string, names []string, emptied sets.Set[string], now time.Time) Dirty {
	return c.change(func(g *graph) {
		p := g.pools[pool]
		if p == nil {
			return
		}
		for _, name := range names {
			if n := upToDate(g, name); n != nil && p.turns.allow(name, emptied.Has(name), now) {
				g.planNode(n)
			}
		}
	})
}

// WithdrawEvictions revokes all pools' permissions to add NoExecute taints to a node or to close it
// to new pods. The node must then wait for new permissions.
func (c *Cluster) WithdrawEvictions(name string) Dirty {
	return c.change(func(g *graph) { withdraw(g, name) })
}

func withdraw(g *graph, name string) {
	n := g.nodes[name]
	if n == nil {
		return
	}
	for _, p := range n.pools {
		if p.turns.withdraw(name) {
			g.dirty.Pools.Insert(p.object.Name)
		}
	}
	g.planNode(n)
}

// Evictions returns the input of [plan.NextEvictions] for a pool with NoExecute taints. list
// contains the pool's waiting members, and all nodes of the cluster from which pods may currently
// be evicted. members and total are the numbers of nodes in the pool and in the cluster. To be
// fast, Evictions visits no other nodes, and evaluates pods with the same load.Profile together.
func (c *Cluster) Evictions(name string, maxDuration time.Duration, now time.Time) (list []plan.NodeEviction, members, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.graph
	p := g.pools[name]
	if p == nil || len(p.turns.pending) == 0 {
		return nil, 0, 0
	}
	candidates := p.turns.pending.Clone()
	for node, since := range g.tainted {
		if plan.Within(since, maxDuration, now) {
			candidates.Insert(node)
		} else {
			delete(g.tainted, node)
		}
	}
	for _, other := range g.pools {
		for node := range other.turns.allowed {
			candidates.Insert(node)
		}
	}
	delays := evictionDelays{}
	for node := range candidates {
		n := g.nodes[node]
		if n == nil {
			continue
		}
		e := plan.NodeEviction{
			Node: node, Member: p.members.Has(node), Waiting: p.turns.pending.Has(node),
			Failing: p.turns.failing.Has(node),
			Since: n.sinceLastEviction(func(taints []corev1.Taint) bool {
				return n.affectedPods(taints, delays, maxDuration, false) > 0
			}),
		}
		e.Allowed = !e.Waiting && slices.ContainsFunc(n.pools, func(other *pool) bool { _, has := other.turns.allowed[node]; return has })
		emptying, _ := n.emptyingTaints()
		taints := append(n.evictingTaints(), emptying...)
		if e.Waiting {
			taints = append(taints, plan.NoExecuteTaints(p.object)...)
		}
		e.AffectedPods = n.affectedPods(taints, delays, maxDuration, e.Waiting)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b plan.NodeEviction) int { return cmp.Compare(a.Node, b.Node) })
	return list, len(p.members), len(g.nodes)
}
