// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// Controller returns the definition of the controller "pod-count".
func Controller() controller.Definition {
	return controller.Definition{
		Name:    "pod-count",
		Purpose: "Keeps the number of pods of each ReplicaSet in a label.",
		// The controller writes to every ReplicaSet of the cluster, so it must be turned on
		// explicitly.
		OffByDefault: true,
		Namespaced:   true,
		Watches:      []client.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}},
		Indexes:      []index.Index{index.PodsByController()},
		Rules:        rules,
		SetupWithManager: func(mgr ctrl.Manager, _ clock.Clock) error {
			return SetupWithManager(mgr)
		},
	}
}

var rules = []controller.Rule{
	{
		Group: appsv1.GroupName, Resources: []string{"replicasets"}, Verbs: []string{"list", "watch", "patch"},
		Reason: "Patches the label " + Label + " if it differs.",
	},
	{
		Resources: []string{"pods"}, Verbs: []string{"list", "watch"},
		Reason: "Counts the pods of each ReplicaSet.",
	},
}
