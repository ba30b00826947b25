// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// updateMembership makes the node a member of the pools that select it now, and of no
// others.
func (c *Cluster) updateMembership(n *nodeState) {
	var now []*poolState
	if n.object != nil {
		now = slices.Collect(c.poolsSelecting(n.object))
	}
	for _, p := range n.pools {
		if !slices.Contains(now, p) {
			c.leave(p, n)
		}
	}
	for _, p := range now {
		if !slices.Contains(n.pools, p) {
			c.join(p, n)
		}
	}
	n.pools = now
}

// poolsSelecting yields the pools that select a node.
func (c *Cluster) poolsSelecting(node *corev1.Node) iter.Seq[*poolState] {
	return func(yield func(*poolState) bool) {
		for _, p := range c.pools {
			if p.selector != nil && p.selector.Matches(labels.Set(node.Labels)) && !yield(p) {
				return
			}
		}
	}
}

// join makes the node a member of the pool.
func (c *Cluster) join(p *poolState, n *nodeState) {
	p.members.Insert(n.name)
	if n.ready {
		p.ready++
	}
	p.capacity.Add(n.capacity)
	p.allocatable.Add(n.allocatable)
	p.requested.AddSums(n.requested)
	p.count(n)
	c.dirty.Pools.Insert(p.object.Name)
	if c.recording && p.object.DeletionTimestamp.IsZero() {
		p.events.recordJoin(n.name)
	}
}

// leave ends the node's membership of the pool.
func (c *Cluster) leave(p *poolState, n *nodeState) {
	p.members.Delete(n.name)
	p.failing.Delete(n.name)
	delete(p.cleanups, n.name)
	if n.ready {
		p.ready--
	}
	p.capacity.Subtract(n.capacity)
	p.allocatable.Subtract(n.allocatable)
	p.requested.SubtractSums(n.requested)
	p.uncount(n)
	c.dirty.Pools.Insert(p.object.Name)
	if c.recording && p.object.DeletionTimestamp.IsZero() {
		p.events.recordLeave(n.name)
	}
}
