// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Controller returns the definition of the controller "restart-opt-in".
func Controller() controller.Definition {
	return controller.Definition{
		Name:       "restart-opt-in",
		Purpose:    "Creates ScheduledRestarts from the annotations of workloads, and keeps them in line with the annotations.",
		Namespaced: true,
		Watches:    append([]client.Object{&tidekeeperv1.ScheduledRestart{}}, controller.Objects(workload.Required())...),
		Optional:   controller.Objects(workload.Optional()),
		Rules:      rules,
		SetupWithManager: func(mgr ctrl.Manager, _ clock.Clock) error {
			return SetupWithManager(mgr)
		},
	}
}

// Setting owner references on ScheduledRestarts requires no permission to update finalizers, not
// even with the admission plugin OwnerReferencesPermissionEnforcement, because blockOwnerDeletion
// is not set.
var rules = append(
	controller.WorkloadRules([]string{"get", "list", "watch"},
		"Reads the annotations of workloads; from the API server before a ScheduledRestart gets an owner."),
	controller.Rule{
		Group: tidekeeperv1.GroupName, Resources: []string{"scheduledrestarts"}, Verbs: []string{"list", "watch", "create", "patch", "delete"},
		Reason: "Writes the ScheduledRestart of a workload by server-side apply, which is a patch, and requires create for a new object. Deletes it when the annotation is removed.",
	},
	controller.OptionalRule(),
)
