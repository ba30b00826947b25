// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// workloads lists the kinds whose controllers may create an object for an owner of the previous run.
var workloads = []string{"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}

// WithoutLeftovers returns the versions of a run without the objects of the previous run in the same
// sandbox. On a busy machine, a controller of the control plane may learn only after the sandbox was
// restored that a workload is gone, and may have created pods for it, which the garbage collector
// deletes. The run has no version of the owner of such an object.
func WithoutLeftovers(versions []Version) []Version {
	seen := map[types.UID]bool{}
	for i := range versions {
		seen[versions[i].Object.GetUID()] = true
	}
	return slices.DeleteFunc(slices.Clone(versions), func(v Version) bool {
		owner := metav1.GetControllerOfNoCopy(v.Object)
		return owner != nil && slices.Contains(workloads, owner.Kind) && !seen[owner.UID]
	})
}
