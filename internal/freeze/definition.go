// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// Controller defines the controller "freeze".
func Controller() controller.Definition {
	return controller.Definition{
		Name:    "freeze",
		Purpose: "Provides the controllers scheduled-restart and nodepool with Freezes, and maintains the status of each. If it does not run, Freezes have no effect.",
		Watches: []client.Object{&tidekeeperv1.Freeze{}, &corev1.Namespace{}},
		Borrows: []controller.Borrowed{
			{Object: &tidekeeperv1.ScheduledRestart{}, Reason: "Counts the restarts that a Freeze holds back."},
			{Object: &tidekeeperv1.NodePool{}, Reason: "Counts the nodes that wait for a NoExecute taint."},
		},
		Indexes:          []index.Index{index.RestartsHeldBack()},
		Rules:            rules,
		RegisterMetrics:  RegisterMetrics,
		SetupWithManager: func(mgr ctrl.Manager, c clock.Clock) error { return SetupWithManager(mgr, c) },
	}
}

var rules = []controller.Rule{
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"freezes"}, Verbs: []string{"list", "watch"},
		Reason: "Reads the Freezes. They are also listed from the API server just before a restart is sent, and before a NoExecute taint is put on a node.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"freezes/status"}, Verbs: []string{"patch"},
		Reason: "Writes status and conditions.",
	},
	{
		Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"},
		Reason: "Reads the labels for the selectors of Freezes. A namespace is read from the API server just before a restart is sent, if a selector depends on it.",
	},
}
