// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
)

// setCapacity updates what a node offers, also in the sums of its pools.
func (c *Cluster) setCapacity(n *nodeState, node *corev1.Node) {
	capacity, allocatable := resources.Offered(node)
	for _, p := range n.pools {
		p.capacity.Subtract(n.capacity)
		p.capacity.Add(capacity)
		p.allocatable.Subtract(n.allocatable)
		p.allocatable.Add(allocatable)
		c.dirty.Utilization.Insert(p.object.Name)
	}
	c.setOffered(n, capacity, allocatable)
}

// setOffered sets what a node offers. If no other node offers a resource, requests for it
// begin or cease to count.
func (c *Cluster) setOffered(n *nodeState, capacity, allocatable []resources.Amount) {
	before, now := resources.NamesIn(n.capacity, n.allocatable), resources.NamesIn(capacity, allocatable)
	n.capacity, n.allocatable = capacity, allocatable
	began, ended := sets.New[corev1.ResourceName](), sets.New[corev1.ResourceName]()
	// First add, then remove: a resource that the node offers before and after must not
	// drop to 0 in between.
	for _, name := range now {
		if c.offered[name]++; c.offered[name] == 1 {
			began.Insert(name)
		}
	}
	for _, name := range before {
		if c.offered[name]--; c.offered[name] == 0 {
			delete(c.offered, name)
			ended.Insert(name)
		}
	}
	c.startCounting(began)
	c.stopCounting(ended)
}

// startCounting adds what pods request of resources that a first node has begun to offer. It
// is cheap unless pods request them.
func (c *Cluster) startCounting(names sets.Set[corev1.ResourceName]) {
	c.eachRequest(names, func(n *nodeState, a resources.Amount, pods int) {
		for sums := range n.requestedSums() {
			sums.AddN(a, pods)
		}
	})
}

// stopCounting is the opposite of startCounting, for resources that no node offers now.
func (c *Cluster) stopCounting(names sets.Set[corev1.ResourceName]) {
	c.eachRequest(names, func(n *nodeState, a resources.Amount, pods int) {
		for sums := range n.requestedSums() {
			sums.SubtractN(a, pods)
		}
	})
}

// eachRequest calls fn for each node and each amount of the named resources that pods on it
// request, with the number of those pods.
func (c *Cluster) eachRequest(names sets.Set[corev1.ResourceName], fn func(n *nodeState, a resources.Amount, pods int)) {
	if len(names) == 0 {
		return
	}
	requests := map[*profile][]resources.Amount{}
	for _, p := range c.profiles {
		for name := range names {
			if a, ok := p.request(name); ok {
				requests[p] = append(requests[p], a)
			}
		}
	}
	if len(requests) == 0 {
		return
	}
	for _, n := range c.nodes {
		for p, pods := range n.pods {
			for _, a := range requests[p] {
				fn(n, a, pods)
				c.utilizationChanged(n)
			}
		}
	}
}
