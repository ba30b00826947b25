// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// AllowEvictions allows the pool's NoExecute taints on these nodes.
func (c *Cluster) AllowEvictions(pool string, nodes []string) Dirty {
	c.lock()
	if p := c.pools[pool]; p != nil {
		for _, name := range nodes {
			if n, known := c.nodes[name]; known && p.evictionPending.Has(name) {
				p.evictionAllowed.Insert(name)
				c.planNode(n)
			}
		}
	}
	return c.unlock()
}

// WithdrawEvictions takes back that NoExecute taints are allowed on a node: its pools wait for
// their turn again.
func (c *Cluster) WithdrawEvictions(node string) Dirty {
	c.lock()
	if n := c.nodes[node]; n != nil {
		for _, p := range n.pools {
			if p.evictionAllowed.Has(node) {
				p.evictionAllowed.Delete(node)
				c.dirty.Pools.Insert(p.object.Name)
			}
		}
		c.planNode(n)
	}
	return c.unlock()
}

// Evictions returns the input of [plan.NextEvictions] for a pool with NoExecute taints: the
// members that wait, and all nodes of the cluster that may be being emptied; and how many
// nodes the pool and the cluster have. It looks at no other nodes, and at pods only by
// profile.
func (c *Cluster) Evictions(pool string, maxDuration time.Duration, now time.Time) (list []plan.NodeEviction, members, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[pool]
	if p == nil || len(p.evictionPending) == 0 {
		return nil, 0, 0
	}
	candidates := p.evictionPending.Clone()
	for name, since := range c.tainted {
		if plan.Within(since, maxDuration, now) {
			candidates.Insert(name)
		} else {
			delete(c.tainted, name)
		}
	}
	for _, other := range c.pools {
		for name := range other.evictionAllowed {
			candidates.Insert(name)
		}
	}
	delays := map[*profile]map[string]time.Duration{}
	for name := range candidates {
		n := c.nodes[name]
		if n == nil || n.object == nil {
			continue
		}
		e := plan.NodeEviction{
			Node: name, Member: p.members.Has(name), Waiting: p.evictionPending.Has(name),
			Failing: p.failing.Has(name), Since: c.tainted[name],
		}
		for _, other := range n.pools {
			e.Allowed = e.Allowed || other.evictionAllowed.Has(name)
		}
		e.Allowed = e.Allowed && !e.Waiting
		taints := n.evictingTaints()
		if e.Waiting {
			taints = append(taints, plan.NoExecuteTaints(p.object)...)
		}
		e.AffectedPods = n.affectedPods(taints, delays, maxDuration, e.Waiting)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b plan.NodeEviction) int { return cmp.Compare(a.Node, b.Node) })
	return list, len(p.members), c.nodeCount
}

// evictingTaints returns the NoExecute taints on the node that a pool asks for.
func (n *nodeState) evictingTaints() []corev1.Taint {
	var taints []corev1.Taint
	for _, on := range n.object.Spec.Taints {
		if on.Effect == corev1.TaintEffectNoExecute && slices.ContainsFunc(n.pools, func(p *poolState) bool { return plan.HasTaint(p.object, &on) }) {
			taints = append(taints, on)
		}
	}
	return taints
}

// affectedPods returns how many pods of the node the taints evict: sooner or later if ever,
// and otherwise within maxDuration. The delay of each profile is kept for the next node; -1
// means that its pods are not evicted.
func (n *nodeState) affectedPods(taints []corev1.Taint, delays map[*profile]map[string]time.Duration, maxDuration time.Duration, ever bool) (count int) {
	if len(taints) == 0 {
		return 0
	}
	key := plan.TaintsKey(taints)
	for p, pods := range n.pods {
		after, known := delays[p][key]
		if !known {
			var evicted bool
			if after, evicted = plan.EvictionDelayOf(p.tolerations, taints); !evicted {
				after = -1
			}
			if delays[p] == nil {
				delays[p] = map[string]time.Duration{}
			}
			delays[p][key] = after
		}
		if after >= 0 && (ever || after < maxDuration) {
			count += pods
		}
	}
	return count
}
