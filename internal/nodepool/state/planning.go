// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// planNode plans a node again, and keeps the summary for queries: the node controller, which
// carries out the plan, makes its own from the node as it reads it.
func (c *Cluster) planNode(n *nodeState) {
	old := n.summary
	n.summary = plan.Summary{}
	delete(c.tainted, n.name)
	if n.object != nil {
		if since := plan.LatestTaint(n.evictingTaints()); !since.IsZero() {
			c.tainted[n.name] = since
		}
		nodePlan := plan.ForNode(n.object, c.poolsOnNode(n.object, n.ownership))
		n.summary = nodePlan.Summary()
		if n.summary.NeedsWrite {
			c.dirty.Nodes.Insert(n.name)
		}
	}
	c.updateSets(n.name, old.Outdated, n.summary.Outdated, func(p *poolState) sets.Set[string] { return p.outdated })
	c.updateSets(n.name, old.EvictionPending, n.summary.EvictionPending, func(p *poolState) sets.Set[string] { return p.evictionPending })
	c.updateSets(n.name, old.NoRoom, n.summary.NoRoom, func(p *poolState) sets.Set[string] { return p.noRoom })
	for pool := range n.refused {
		if !slices.Contains(n.summary.Affected, pool) {
			c.clearRefusal(n, pool)
		}
	}
	for _, pool := range old.Evicting {
		// The node has the taint, or the pool no longer asks for it. If the taint has to be
		// added to this node once more, it waits for its turn again.
		if p := c.pools[pool]; p != nil && !slices.Contains(n.summary.Evicting, pool) {
			p.evictionAllowed.Delete(n.name)
		}
	}
	if slices.Equal(old.Conflicts, n.summary.Conflicts) {
		return
	}
	for _, conflict := range old.Conflicts {
		if p := c.pools[conflict.Pool]; p != nil {
			delete(p.conflicts, n.name)
			c.dirty.Pools.Insert(conflict.Pool)
		}
	}
	for _, conflict := range n.summary.Conflicts {
		p := c.pools[conflict.Pool]
		p.conflicts[n.name] = append(p.conflicts[n.name], conflict)
		c.dirty.Pools.Insert(conflict.Pool)
	}
}

// updateSets moves a node's name from the sets of some pools to those of others.
func (c *Cluster) updateSets(node string, from, to []string, set func(*poolState) sets.Set[string]) {
	if slices.Equal(from, to) {
		return
	}
	for _, pool := range from {
		if p := c.pools[pool]; p != nil {
			c.dirty.Pools.Insert(pool)
			set(p).Delete(node)
		}
	}
	for _, pool := range to {
		c.dirty.Pools.Insert(pool)
		set(c.pools[pool]).Insert(node)
	}
}

// poolsOnNode returns the pools that concern a node: those that select it, and those that
// its record names.
func (c *Cluster) poolsOnNode(node *corev1.Node, r ownership.Record) []plan.PoolOnNode {
	var pools []plan.PoolOnNode
	for p := range c.poolsSelecting(node) {
		pools = append(pools, plan.PoolOnNode{Pool: p.object, Member: p.object.DeletionTimestamp.IsZero(), MayEvict: p.evictionAllowed.Has(node.Name)})
	}
	for i := range pools {
		pools[i].FormerlyManaged = c.formerKeys.forPool(pools[i].Pool.Name)
	}
	for pool := range r {
		p, former := c.pools[pool], c.formerKeys.forPool(pool)
		switch {
		case p == nil && len(former) > 0:
			deleted := &tidekeeperv1.NodePool{}
			deleted.Name = pool
			pools = append(pools, plan.PoolOnNode{Pool: deleted, FormerlyManaged: former})
		case p != nil && !slices.ContainsFunc(pools, func(on plan.PoolOnNode) bool { return on.Pool == p.object }):
			pools = append(pools, plan.PoolOnNode{Pool: p.object, FormerlyManaged: former})
		}
	}
	return pools
}
