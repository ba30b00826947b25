// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Node holds the resource amounts of a node that determine how many new pods fit on the node. Until
// the first call of Recount, the node has no free resources.
type Node struct {
	Name string
	// Object is the Kubernetes node, whose taints and conditions determine whether it accepts new
	// pods.
	Object *corev1.Node
	Amounts
}

// Amounts holds the amounts of a node that are included in its pools' sums. The slices must not be
// modified.
type Amounts struct {
	allocatable []resources.Amount
	// left holds the allocatable amounts minus the requests of the node's pods. Negative
	// differences count as 0.
	left []resources.Amount
}

// Recount computes the node's amounts from its allocatable resources and the requests of its pods.
// It returns the previous amounts, which the caller passes to [Pool.Update].
func (n *Node) Recount(allocatable []resources.Amount, requested resources.Sums) (before Amounts) {
	before = n.Amounts
	n.allocatable, n.left = allocatable, make([]resources.Amount, len(allocatable))
	for i, a := range allocatable {
		n.left[i] = resources.Amount{Resource: a.Resource, Value: max(0, a.Value-requested[a.Resource].Value)}
	}
	return before
}
