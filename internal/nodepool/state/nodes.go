// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodes"
)

// SetNode adds or updates a node.
func (c *Cluster) SetNode(node *corev1.Node) Dirty {
	c.lock()
	n := c.node(node.Name)
	old := n.object
	n.object = node
	if old == nil {
		c.nodeCount++
	}

	// This runs for each heartbeat, which changes none of these.
	ready := nodes.IsReady(node)
	readyChanged := ready != n.ready
	amountsChanged := old == nil || !sameAmounts(old.Status.Capacity, node.Status.Capacity) || !sameAmounts(old.Status.Allocatable, node.Status.Allocatable)
	taintsChanged := old == nil || !equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints)
	labelsChanged := old == nil || !maps.Equal(old.Labels, node.Labels)

	if readyChanged {
		for _, p := range n.pools {
			if ready {
				p.ready++
			} else {
				p.ready--
			}
			c.dirty.Pools.Insert(p.object.Name)
		}
		n.ready = ready
	}
	if amountsChanged {
		c.setCapacity(n, node)
	}
	if readyChanged || amountsChanged || taintsChanged || old.Spec.Unschedulable != node.Spec.Unschedulable ||
		old.DeletionTimestamp.IsZero() != node.DeletionTimestamp.IsZero() {
		c.recountRoom(n)
	}
	if labelsChanged {
		c.roomChanges++ // Pods choose nodes by labels, and zones are labels.
		c.updateMembership(n)
	}
	if old == nil || old.Annotations[tidekeeperv1.OwnershipAnnotation] != node.Annotations[tidekeeperv1.OwnershipAnnotation] {
		c.removeOwnership(n)
		// A record that cannot be read counts as empty; the plan rewrites it.
		var err error
		n.ownership, err = ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation])
		n.unreadable = err != nil
		c.addOwnership(n)
	}
	if labelsChanged || taintsChanged || !maps.Equal(old.Annotations, node.Annotations) {
		c.planNode(n)
	}
	return c.unlock()
}

// DeleteNode removes a node.
func (c *Cluster) DeleteNode(name string) Dirty {
	c.lock()
	if n, known := c.nodes[name]; known && n.object != nil {
		c.removeOwnership(n)
		n.object, n.ownership, n.unreadable = nil, nil, false
		c.nodeCount--
		c.roomChanges++
		c.updateMembership(n)
		c.planNode(n)
		c.setOffered(n, nil, nil)
		n.ready, n.limiter, n.room = false, nil, room{}
		c.forget(n)
	}
	return c.unlock()
}

func (c *Cluster) node(name string) *nodeState {
	n, known := c.nodes[name]
	if !known {
		n = &nodeState{name: name}
		c.nodes[name] = n
	}
	return n
}

// forget drops a node that neither exists nor has pods.
func (c *Cluster) forget(n *nodeState) {
	if n.object == nil && len(n.pods) == 0 {
		delete(c.nodes, n.name)
	}
}

// sameAmounts reports whether two lists are equal. It is called for each heartbeat of a
// node, so it must be cheap.
func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, resource.Quantity.Equal)
}
