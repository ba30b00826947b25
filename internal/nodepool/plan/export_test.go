// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
)

// ForNodeExcept is like ForNode, but neither adds nor removes settings of the pools named in `frozen`.
func ForNodeExcept(node *corev1.Node, pools []PoolOnNode, frozen sets.Set[string]) NodePlan {
	return ForRecorded(node, ownership.Read(node.Annotations[tidekeeperv1.OwnershipAnnotation]), pools, frozen)
}

// Unlimited returns the plan for the pools, which must be in order of precedence, whatever the size
// of the node's annotations.
func Unlimited(node *corev1.Node, pools []PoolOnNode) NodePlan {
	return input{node: node, pools: pools, recorded: ownership.Read(node.Annotations[tidekeeperv1.OwnershipAnnotation])}.plan(nil)
}

// Fits exports fits to tests.
func (p *NodePlan) Fits(node *corev1.Node) bool { return p.fits(node) }
