// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Node is the room of a node. The zero value with a name and an object has no room.
type Node struct {
	Name string
	// Object decides by its taints and conditions whether new pods can use the node.
	Object *corev1.Node
	Amounts
}

// Amounts are the amounts of a node that are included in the sums of its pools. The slices
// never change.
type Amounts struct {
	allocatable []resources.Amount
	// left is allocatable less the requests of the node's pods, at least 0.
	left []resources.Amount
}

// Recount sets the amounts of the node, and returns the previous amounts for [Pool.Update].
func (n *Node) Recount(allocatable []resources.Amount, requested resources.Sums) (before Amounts) {
	before = n.Amounts
	n.allocatable, n.left = allocatable, make([]resources.Amount, len(allocatable))
	for i, a := range allocatable {
		n.left[i] = resources.Amount{Resource: a.Resource, Value: max(0, a.Value-requested[a.Resource].Value)}
	}
	return before
}
