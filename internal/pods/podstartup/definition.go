// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/controller"
)

// Controller returns the definition of the controller "pod-startup".
func Controller() controller.Definition {
	return controller.Definition{
		Name:            "pod-startup",
		Purpose:         "Measures how long pods take to start, by stage and node pool.",
		Watches:         []client.Object{&corev1.Pod{}, &corev1.Node{}, &tidekeeperv1.NodePool{}},
		Rules:           rules,
		RegisterMetrics: RegisterMetrics,
		SetupWithManager: func(mgr ctrl.Manager, _ clock.Clock) error {
			return SetupWithManager(mgr)
		},
	}
}

var rules = []controller.Rule{
	{
		Resources: []string{"pods", "nodes"}, Verbs: []string{"list", "watch"},
		Reason: "Measures how pods start, and finds the node of each pod.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"nodepools"}, Verbs: []string{"list", "watch"},
		Reason: "Finds the pool of a node.",
	},
}
