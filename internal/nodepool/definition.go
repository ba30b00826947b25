// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// Controller returns the definition of the controller "nodepool", with its options at their
// defaults.
func Controller() controller.Definition {
	o := &Options{}
	return controller.Definition{
		Name:    "nodepool",
		Purpose: "Keeps the labels, annotations and taints of each NodePool on its nodes, its RuntimeClass, and its status.",
		Watches: []client.Object{&tidekeeperv1.NodePool{}, &corev1.Node{}, &corev1.Pod{}, &nodev1.RuntimeClass{}, &policyv1.PodDisruptionBudget{}},
		Borrows: []controller.Borrowed{
			{Object: &tidekeeperv1.Freeze{}, Reason: "Puts no NoExecute taint on a node, and evicts no pod, while a Freeze is in force."},
		},
		Indexes:         []index.Index{index.PodsByNode()},
		Rules:           rules,
		Options:         o.group(),
		RegisterMetrics: RegisterMetrics,
		SetupWithManager: func(mgr ctrl.Manager, c clock.Clock) error {
			return SetupWithManager(mgr, *o, c)
		},
	}
}

var rules = []controller.Rule{
	{
		Resources: []string{"nodes"}, Verbs: []string{"list", "watch", "patch"},
		Reason: "Selects and counts the nodes of each pool, and writes the pool's settings to a node in one patch. Never creates, replaces or deletes nodes.",
	},
	{
		Resources: []string{"pods"}, Verbs: []string{"list", "watch"},
		Reason: "Sums up the requests of the pods on the nodes of a pool, and finds pods that a NoExecute taint would delete.",
	},
	{
		Resources: []string{"pods/eviction"}, Verbs: []string{"create"},
		Reason: "Empties a node before it gets a NoExecute taint with the eviction WithinBudgets. Never deletes pods.",
	},
	{
		Group: policyv1.GroupName, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list", "watch"},
		Reason: "Finds the pods that would not leave a node that is drained, for pools that ask with drainable. Only reads budgets.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodepools"}, Verbs: []string{"list", "watch", "patch"},
		Reason: "Reads the pools, and adds and removes their finalizer.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodepools/status"}, Verbs: []string{"patch"},
		Reason: "Writes status and conditions.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodepools/finalizers"}, Verbs: []string{"update"},
		Reason: "Makes the pool the owner of its RuntimeClass, with blockOwnerDeletion. Where the admission plugin OwnerReferencesPermissionEnforcement is on, that requires the right to set the owner's finalizers.",
	},
	{
		Group: nodev1.GroupName, Resources: []string{"runtimeclasses"}, Verbs: []string{"list", "watch", "create", "patch", "delete"},
		Reason: "Manages the RuntimeClass of each pool. Its handler is immutable, so a new handler requires delete and create.",
	},
}
