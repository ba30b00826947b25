// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// Name is the name of the controller that reconciles NodeMaintenances.
const Name = "node-maintenance"

// Controller defines the controller "node-maintenance".
func Controller() controller.Definition {
	return controller.Definition{
		Name:    Name,
		Purpose: "Empties the nodes that NodeMaintenances select, a few at a time, and puts them back into use.",
		// The controller cordons nodes and evicts pods in all namespaces, so users must enable it
		// explicitly.
		OffByDefault: true,
		Watches:      []client.Object{&tidekeeperv1.NodeMaintenance{}, &tidekeeperv1.NodePool{}, &corev1.Node{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{}},
		Borrows: []controller.Borrowed{
			{Object: &tidekeeperv1.Freeze{}, Reason: "Begins no drain and evicts no pod while a Freeze is in force."},
			{Object: &tidekeeperv1.ScheduledRestart{}, Reason: "Restarts workloads that an eviction would take down. If no controller restarts them, their pods are evicted."},
		},
		Indexes:         []index.Index{index.PodsByNode()},
		Rules:           rules,
		RegisterMetrics: RegisterMetrics,
		SetupWithManager: func(mgr ctrl.Manager, c clock.Clock) error {
			return SetupWithManager(mgr, c)
		},
	}
}

var rules = []controller.Rule{
	{
		Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"},
		Reason: "Selects nodes, cordons and uncordons them, and marks those that are drained. A node is read from the API server before its pods are moved. Never creates, replaces or deletes nodes.",
	},
	{
		Resources: []string{"nodes/status"}, Verbs: []string{"patch"},
		Reason: "Writes the node condition Drained.",
	},
	{
		Resources: []string{"pods"}, Verbs: []string{"list", "watch"},
		Reason: "Finds out which pods are left on a node that is being drained, and whether they have a place on other nodes.",
	},
	{
		Resources: []string{"pods"}, Verbs: []string{"patch"},
		Reason: "Annotates pods with controller.kubernetes.io/pod-deletion-cost, so that a restart that moves them replaces the pods on the drained node first. Changes nothing else.",
	},
	{
		Group: corev1.GroupName, Resources: []string{"pods/eviction"}, Verbs: []string{"create"},
		Reason: "Evicts the pods of a node that is being drained, within their PodDisruptionBudgets. Never deletes pods.",
	},
	{
		Group: policyv1.GroupName, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list", "watch"},
		Reason: "Finds out whether a PodDisruptionBudget never allows the eviction of a pod, and when one allows another eviction.",
	},
	{
		Group: appsv1.GroupName, Resources: []string{"deployments"}, Verbs: []string{"get"},
		Reason: "Finds out whether an eviction would take a Deployment down, and whether a restart would not.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"scheduledrestarts"}, Verbs: []string{"get", "list", "create", "patch", "delete"},
		Reason: "Requests the restarts that move pods, by ScheduledRestarts with a label of its own. Leaves all others alone.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodepools"}, Verbs: []string{"list", "watch"},
		Reason: "Reads the selectors of the pools that a NodeMaintenance names.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodemaintenances"}, Verbs: []string{"list", "watch", "patch"},
		Reason: "Reads the NodeMaintenances, and adds and removes their finalizer.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodemaintenances/status"}, Verbs: []string{"patch"},
		Reason: "Writes status and conditions.",
	},
}
