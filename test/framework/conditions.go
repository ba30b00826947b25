// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// statusOf maps each reason of the condition Ready to the condition's status, as documented in
// docs/concepts/node-pools.md and docs/concepts/scheduled-restarts.md.
var statusOf = map[string]metav1.ConditionStatus{
	tidekeeperv1.ReasonHealthy: metav1.ConditionTrue, tidekeeperv1.ReasonNodesNotReady: metav1.ConditionTrue, tidekeeperv1.ReasonNoNodes: metav1.ConditionTrue,
	tidekeeperv1.ReasonOutOfSync: metav1.ConditionFalse, tidekeeperv1.ReasonConflicted: metav1.ConditionFalse, tidekeeperv1.ReasonNodePatchRefused: metav1.ConditionFalse,
	tidekeeperv1.ReasonRuntimeClassConflict: metav1.ConditionFalse, tidekeeperv1.ReasonInvalidSelector: metav1.ConditionFalse, tidekeeperv1.ReasonDeleting: metav1.ConditionFalse,
	tidekeeperv1.ReasonEvictionBlocked: metav1.ConditionFalse,

	tidekeeperv1.ReasonScheduled: metav1.ConditionTrue, tidekeeperv1.ReasonSuspended: metav1.ConditionTrue, tidekeeperv1.ReasonRestarting: metav1.ConditionTrue,
	tidekeeperv1.ReasonTargetPaused: metav1.ConditionTrue, tidekeeperv1.ReasonTargetRolling: metav1.ConditionTrue, tidekeeperv1.ReasonTargetUnhealthy: metav1.ConditionTrue,
	tidekeeperv1.ReasonBudgetExhausted: metav1.ConditionTrue, tidekeeperv1.ReasonWindowClosed: metav1.ConditionTrue, tidekeeperv1.ReasonOutsideWindows: metav1.ConditionFalse,
	tidekeeperv1.ReasonOutOfOrder: metav1.ConditionTrue, tidekeeperv1.ReasonPredecessorFailed: metav1.ConditionTrue, tidekeeperv1.ReasonPredecessorNotFound: metav1.ConditionTrue,
	tidekeeperv1.ReasonOrderCycle: metav1.ConditionFalse, tidekeeperv1.ReasonClosedByQuery: metav1.ConditionTrue,
	tidekeeperv1.ReasonFrozen: metav1.ConditionTrue, tidekeeperv1.ReasonPending: metav1.ConditionTrue, tidekeeperv1.ReasonInForce: metav1.ConditionTrue, tidekeeperv1.ReasonEnded: metav1.ConditionTrue,
	tidekeeperv1.ReasonInvalidSchedule: metav1.ConditionFalse, tidekeeperv1.ReasonFailureLimit: metav1.ConditionFalse,
	tidekeeperv1.ReasonTargetNotFound: metav1.ConditionFalse, tidekeeperv1.ReasonOrphaned: metav1.ConditionFalse, tidekeeperv1.ReasonStrategyOnDelete: metav1.ConditionFalse, tidekeeperv1.ReasonStrategyPartition: metav1.ConditionFalse,
	tidekeeperv1.ReasonMaintaining: metav1.ConditionTrue, tidekeeperv1.ReasonMaxUnavailable: metav1.ConditionTrue, tidekeeperv1.ReasonComplete: metav1.ConditionTrue, tidekeeperv1.ReasonNoPlace: metav1.ConditionTrue,
	tidekeeperv1.ReasonPodsNotWatched: metav1.ConditionFalse, tidekeeperv1.ReasonConfigNotWatched: metav1.ConditionFalse,
}

// ReadyIs returns nil if the condition Ready has the given reason, the status that statusOf maps it
// to, and the given observed generation.
func ReadyIs(conditions []metav1.Condition, generation int64, reason string) error {
	status, known := statusOf[reason]
	if !known {
		return fmt.Errorf("%s is not a reason of the condition Ready", reason)
	}
	ready := meta.FindStatusCondition(conditions, tidekeeperv1.ConditionReady)
	if ready == nil {
		return errors.New("no condition Ready yet")
	}
	if ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != generation {
		return fmt.Errorf("Ready is %s, %s for generation %d, want %s, %s for generation %d: %s",
			ready.Status, ready.Reason, ready.ObservedGeneration, status, reason, generation, ready.Message)
	}
	return nil
}
