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

// AllowEvictions lets the pool's NoExecute taints reach these nodes.
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

// Evictions returns what [NextEvictions] wants to see of a pool with NoExecute
// taints: the members that wait, and all nodes of the cluster that may be being
// emptied; and how many nodes the pool and the cluster have. It looks at no others,
// and at their pods only by shape.
func (c *Cluster) Evictions(pool string, patience time.Duration, now time.Time) (list []plan.NodeEviction, members, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[pool]
	if p == nil || len(p.evictionPending) == 0 {
		return nil, 0, 0
	}
	look := p.evictionPending.Clone()
	for name, since := range c.tainted {
		if plan.Within(since, patience, now) {
			look.Insert(name)
		} else {
			delete(c.tainted, name)
		}
	}
	for _, other := range c.pools {
		for name := range other.evictionAllowed {
			look.Insert(name)
		}
	}
	victims := map[*profile]map[string]time.Duration{}
	for name := range look {
		n := c.nodes[name]
		if n == nil || n.object == nil {
			continue
		}
		e := plan.NodeEviction{
			Node: name, Member: p.members.Has(name), Waiting: p.evictionPending.Has(name),
			Failing: p.failing.Has(name), Since: c.tainted[name],
		}
		for _, of := range n.pools {
			e.Allowed = e.Allowed || of.evictionAllowed.Has(name)
		}
		e.Allowed = e.Allowed && !e.Waiting
		taints := n.evictingTaints()
		if e.Waiting {
			taints = append(taints, plan.NoExecuteTaints(p.object)...)
		}
		e.AffectedPods = n.affectedPods(taints, victims, patience, e.Waiting)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b plan.NodeEviction) int { return cmp.Compare(a.Node, b.Node) })
	return list, len(p.members), c.nodeCount
}

// evictingTaints returns the taints on the node that evict and that a pool asks for.
func (n *nodeState) evictingTaints() []corev1.Taint {
	var taints []corev1.Taint
	for _, on := range n.object.Spec.Taints {
		if on.Effect == corev1.TaintEffectNoExecute && slices.ContainsFunc(n.pools, func(p *poolState) bool { return plan.HasTaint(p.object, &on) }) {
			taints = append(taints, on)
		}
	}
	return taints
}

// affectedPods returns how many pods of the node the taints drive out: ever, or before
// patience ends. What is found out of a shape is kept for the next node.
func (n *nodeState) affectedPods(taints []corev1.Taint, known map[*profile]map[string]time.Duration, patience time.Duration, ever bool) (count int) {
	if len(taints) == 0 {
		return 0
	}
	key := plan.TaintsKey(taints)
	for s, pods := range n.pods {
		after, asked := known[s][key]
		if !asked {
			var goes bool
			if after, goes = plan.EvictionDelayOf(s.tolerations, taints); !goes {
				after = -1
			}
			if known[s] == nil {
				known[s] = map[string]time.Duration{}
			}
			known[s][key] = after
		}
		if after >= 0 && (ever || after < patience) {
			count += pods
		}
	}
	return count
}
