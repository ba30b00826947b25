// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// controllerName is the name of the controller that carries out ScheduledRestarts. It is used in
// the definition, the options and the work queue of the controller.
const controllerName = "scheduled-restart"

// Controller defines the controller "scheduled-restart", with default options.
func Controller() controller.Definition {
	o := &Options{}
	return controller.Definition{
		Name:            controllerName,
		Purpose:         "Restarts the workloads that ScheduledRestarts name, once for each tick.",
		Namespaced:      true,
		Watches:         append([]client.Object{&tidekeeperv1.ScheduledRestart{}}, controller.Objects(workload.Required())...),
		Optional:        controller.Objects(workload.Optional()),
		OptionalWatches: configWatches(),
		Borrows: []controller.Borrowed{
			{Object: &corev1.Pod{}, Reason: "Finds out when pods become too old, and records how long the new pods of a restart took to become ready. They are read from the cache."},
			{Object: &tidekeeperv1.Freeze{}, Reason: "Starts no restart while a Freeze is in force."},
			{Object: &corev1.Namespace{}, Reason: "Finds out whether a Freeze is about the namespace of a restart."},
			{Object: &corev1.Node{}, Reason: "Leaves nodes that are not ready out of the rollout of a DaemonSet."},
		},
		Indexes: []index.Index{
			index.RestartsByTarget(), index.RestartsByWait(),
			index.PodsByRestart(podtimeline.RestartedAt),
			index.NodesNotReady(),
		},
		Rules:           rules,
		Options:         o.group(),
		Published:       published,
		RegisterMetrics: RegisterMetrics,
		SetupWithManager: func(mgr ctrl.Manager, c clock.Clock) error {
			return SetupWithManager(mgr, *o, c)
		},
	}
}

var rules = append(
	controller.WorkloadRules([]string{"get", "list", "watch", "patch"},
		"Restarts a workload by one patch, and follows the rollout in its status. Reads the workload from the API server before a restart is reported as reverted. Never creates, replaces or deletes workloads."),
	controller.Rule{
		Group: appsv1.GroupName, Resources: []string{"replicasets"}, Verbs: []string{"list"},
		Reason: "Finds out whether a restart that a Deployment no longer shows was rolled out. Used only if a manager died while it started the restart.",
	},
	controller.Rule{
		Group: corev1.GroupName, Resources: []string{"pods"}, Verbs: []string{"list"},
		Reason: "Looks at the pods of a workload before each eviction, and where the cache lags: before a restart for their age, and for how long the new pods of a restart took.",
	},
	controller.Rule{
		Group: corev1.GroupName, Resources: []string{"pods/eviction"}, Verbs: []string{"create"},
		Reason: "Evicts pods that are older than a tick, where a ScheduledRestart has the method Evict. Never deletes pods.",
	},
	controller.Rule{
		Group: tidekeeperv1.GroupName, Resources: []string{"scheduledrestarts"}, Verbs: []string{"get", "list", "watch", "patch"},
		Reason: "Reads what to restart, and when. Writes the default schedule into a spec that names nothing that triggers restarts, and nothing else of it.",
	},
	controller.Rule{
		Group: tidekeeperv1.GroupName, Resources: []string{"scheduledrestarts/status"}, Verbs: []string{"patch"},
		Reason: "Writes status and conditions.",
	},
	controller.OptionalRule(),
)
