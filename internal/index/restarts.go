// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// RestartTarget is the name of the index of ScheduledRestarts by their target workload: the target
// in the spec and, during a restart, the workload that is being restarted. [TargetKey] returns its
// values.
const RestartTarget = "spec.targetRef"

// TargetKey returns the value in the index [RestartTarget] for a workload.
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
		// The target in the spec was changed during the restart, so index both targets.
		keys = append(keys, TargetKey(*active.TargetRef))
	}
	return keys
}

// RestartWaits is the name of the index of ScheduledRestarts with a due restart that waits. The
// values are the reasons of their condition Ready.
const RestartWaits = "status.waits"

// RestartsByWait returns the index [RestartWaits].
func RestartsByWait() Index {
	return Index{Field: RestartWaits, Object: &tidekeeperv1.ScheduledRestart{}, Values: func(object client.Object) []string {
		restart, ok := object.(*tidekeeperv1.ScheduledRestart)
		if !ok {
			return nil
		}
		if reason := ReadyReason(restart); slices.Contains(tidekeeperv1.WaitReasons, reason) {
			return []string{reason}
		}
		return nil
	}}
}

// RestartHeldBack is the name of the index of ScheduledRestarts that a Freeze holds back, or whose
// history contains a restart that was missed because of a Freeze. IsHeldBack is its only value.
const (
	RestartHeldBack = "status.heldBack"
	IsHeldBack      = "true"
)

// RestartsHeldBack returns the index [RestartHeldBack].
func RestartsHeldBack() Index {
	return Index{Field: RestartHeldBack, Object: &tidekeeperv1.ScheduledRestart{}, Values: func(object client.Object) []string {
		restart, ok := object.(*tidekeeperv1.ScheduledRestart)
		if !ok {
			return nil
		}
		missed := slices.ContainsFunc(restart.Status.History, func(r tidekeeperv1.RestartRecord) bool { return r.Reason == tidekeeperv1.ReasonFrozen })
		if missed || ReadyReason(restart) == tidekeeperv1.ReasonFrozen {
			return []string{IsHeldBack}
		}
		return nil
	}}
}

// ReadyReason returns the reason of the condition Ready; "" without the condition.
func ReadyReason(restart *tidekeeperv1.ScheduledRestart) string {
	if ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
