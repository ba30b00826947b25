// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/optional"
	"tidekeeper.dev/tidekeeper/internal/controller"
)

// Name is the name of the controller, by which the flag --controllers selects it.
const Name = "eviction-responder"

// Controller defines the controller "eviction-responder".
func Controller() controller.Definition {
	return controller.Definition{
		Name:    Name,
		Purpose: "Restarts Deployments that an eviction would take down, as the responder " + tidekeeperv1.EvictionResponder + " of Evictions.",
		// The controller is off by default, as is the alpha API for Evictions in Kubernetes 1.37.
		OffByDefault: true,
		Namespaced:   true,
		Watches:      []client.Object{&corev1.Pod{}},
		Optional:     []client.Object{&lifecyclev1alpha1.Eviction{}},
		Borrows: []controller.Borrowed{
			{Object: &tidekeeperv1.ScheduledRestart{}, Reason: "Follows its restarts. If no controller restarts workloads, the next responder evicts."},
		},
		Rules:           rules,
		RegisterMetrics: RegisterMetrics,
		SetupWithManager: func(mgr ctrl.Manager, c clock.Clock) error {
			return SetupWithManager(mgr, c)
		},
	}
}

var rules = []controller.Rule{
	{
		Group: lifecyclev1alpha1.GroupName, Resources: []string{"evictions"}, Verbs: []string{"list", "watch"},
		Reason: "Reads the Evictions.",
	},
	{
		Group: lifecyclev1alpha1.GroupName, Resources: []string{"evictions/status"}, Verbs: []string{"patch"},
		Reason: "Writes heartbeats and its end, as a responder.",
	},
	{
		Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"},
		Reason: "Reads the pods of Evictions.",
	},
	{
		Group: appsv1.GroupName, Resources: []string{"deployments"}, Verbs: []string{"get"},
		Reason: "Finds out whether an eviction would take a Deployment down.",
	},
	{
		Group: policyv1.GroupName, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list"},
		Reason: "Finds out whether a budget never allows the eviction.",
	},
	{
		Group: tidekeeperv1.GroupName, Resources: []string{"scheduledrestarts"}, Verbs: []string{"get", "list", "create", "patch", "delete"},
		Reason: "Requests restarts, by ScheduledRestarts with a label of its own. Leaves all others alone.",
	},
	{
		Group: optional.CustomResourceDefinitions.Group, Resources: []string{optional.CustomResourceDefinitions.Resource}, Verbs: []string{"list", "watch"},
		Names:  []string{optional.CRDName(lifecyclev1alpha1.SchemeGroupVersion.WithKind("Eviction"))},
		Reason: "Notices by the end of this watch that the API server was restarted, and may serve Evictions now.",
	},
}
