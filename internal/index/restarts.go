// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RestartTarget finds ScheduledRestarts by the workload that they restart, or are
// restarting; [TargetKey] returns its values.
const RestartTarget = "spec.targetRef"

// TargetKey returns the value of the index [RestartTarget] for a workload.
func TargetKey(ref tidekeeperv1.TargetRef) string {
	return ref.GetAPIVersion() + "/" + ref.Kind + "/" + ref.Name
}

// RestartsByTarget returns the index [RestartTarget].
func RestartsByTarget() Index {
	return Index{Field: RestartTarget, Object: &tidekeeperv1.ScheduledRestart{}, Values: restartTarget}
}

func restartTarget(object client.Object) []string {
	restart, ok := object.(*tidekeeperv1.ScheduledRestart)
	if !ok {
		return nil
	}
	keys := []string{TargetKey(restart.Spec.TargetRef)}
	if active := restart.Status.Active; active != nil && active.TargetRef != nil && !active.TargetRef.Equal(restart.Spec.TargetRef) {
		// The spec was edited during the restart.
		keys = append(keys, TargetKey(*active.TargetRef))
	}
	return keys
}
