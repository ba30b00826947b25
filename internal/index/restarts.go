// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RestartTarget finds ScheduledRestarts by the workload in their spec, or by the workload that
// they are restarting; [TargetKey] returns its values.
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

// RestartWaits finds the ScheduledRestarts with a due tick that waits, by the reason of the
// condition Ready.
const RestartWaits = "status.waits"

// RestartsByWait returns the index RestartWaits.
func RestartsByWait() Index {
	return Index{Field: RestartWaits, Object: &tidekeeperv1.ScheduledRestart{}, Values: func(object client.Object) []string {
		restart, ok := object.(*tidekeeperv1.ScheduledRestart)
		if !ok {
			return nil
		}
		if reason := readyReason(restart); slices.Contains(tidekeeperv1.WaitReasons, reason) {
			return []string{reason}
		}
		return nil
	}}
}

// RestartHeldBack finds the ScheduledRestarts that a Freeze holds back, or that have missed a
// tick because of a Freeze according to their history. Its only value is IsHeldBack.
const (
	RestartHeldBack = "status.heldBack"
	IsHeldBack      = "true"
)

// RestartsHeldBack returns the index RestartHeldBack.
func RestartsHeldBack() Index {
	return Index{Field: RestartHeldBack, Object: &tidekeeperv1.ScheduledRestart{}, Values: func(object client.Object) []string {
		restart, ok := object.(*tidekeeperv1.ScheduledRestart)
		if !ok {
			return nil
		}
		missed := slices.ContainsFunc(restart.Status.History, func(r tidekeeperv1.RestartRecord) bool { return r.Reason == tidekeeperv1.ReasonFrozen })
		if missed || readyReason(restart) == tidekeeperv1.ReasonFrozen {
			return []string{IsHeldBack}
		}
		return nil
	}}
}

func readyReason(restart *tidekeeperv1.ScheduledRestart) string {
	if ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
