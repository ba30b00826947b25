// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// urgentInterval is the minimum time between two writes of a pool's status. Writes of newly managed
// keys are exempt (see [whenToWrite]).
const urgentInterval = time.Second

// newStatus returns the status that the pool should have. notOwned is the message about a
// RuntimeClass that belongs to another owner, or "". now becomes the transition time of changed
// conditions.
func newStatus(pool *tidekeeperv1.NodePool, v *state.PoolSnapshot, notOwned string, answers asked, managed tidekeeperv1.ManagedKeys, now time.Time) tidekeeperv1.NodePoolStatus {
	status := tidekeeperv1.NodePoolStatus{
		ObservedGeneration: pool.Generation,
		NodeCount:          int32(v.Nodes),
		ReadyNodes:         int32(v.Ready),
		Capacity:           v.Capacity,
		Allocatable:        v.Allocatable,
		Requested:          v.Requested,
		RequestedPercent:   v.Percent,
		UsableNodes:        int32(v.UsableNodes),
		Usable:             v.Usable,
		Free:               v.Free,
		Lost:               v.Lost,
		LargestFits:        v.LargestFits,
		Summary:            summary(v),
		Managed:            managed,
		Conditions:         slices.Clone(pool.Status.Conditions),
	}
	if v.HeldBackBy != "" {
		status.HeldBackNodes = int32(v.EvictionPending + v.Emptying)
	}
	if v.Emptying > 0 {
		status.Emptying = &tidekeeperv1.EmptyingStatus{Nodes: int32(v.Emptying), BlockedNodes: int32(v.Blocked), Blocked: v.LongestBlocked}
	}
	set := func(conditionType string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: conditionType, Status: is, Reason: reason, Message: message,
			ObservedGeneration: pool.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}

	health := diagnose(pool, v, notOwned)
	ready := metav1.ConditionFalse
	if health.ready {
		ready = metav1.ConditionTrue
	}
	set(tidekeeperv1.ConditionReady, ready, health.reason, health.message)
	if v.Conflicted > 0 {
		set(tidekeeperv1.ConditionConflicted, metav1.ConditionTrue, tidekeeperv1.ReasonKeyConflict, conflictMessage(v))
	} else {
		set(tidekeeperv1.ConditionConflicted, metav1.ConditionFalse, tidekeeperv1.ReasonNoConflict, "no older pool has a key that this pool asks for")
	}
	// The kstatus library requires the conditions Stalled and Reconciling to be absent unless they
	// are True.
	if health.stalled {
		set(tidekeeperv1.ConditionStalled, metav1.ConditionTrue, health.reason, health.message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, tidekeeperv1.ConditionStalled)
	}
	if v.Outdated > 0 || !pool.DeletionTimestamp.IsZero() {
		set(tidekeeperv1.ConditionReconciling, metav1.ConditionTrue, health.reason, health.message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, tidekeeperv1.ConditionReconciling)
	}
	answers.setIn(&status, now)
	return status
}

// summary formats the pool's utilization for the printer columns of kubectl get.
func summary(v *state.PoolSnapshot) tidekeeperv1.UtilizationSummary {
	of := func(name corev1.ResourceName) string {
		return resources.Summary(name, v.Requested, v.Allocatable, v.Percent)
	}
	return tidekeeperv1.UtilizationSummary{CPU: of(corev1.ResourceCPU), Memory: of(corev1.ResourceMemory), Pods: of(corev1.ResourcePods)}
}

// health holds the content of the condition "Ready". stalled means that the pool cannot recover
// without a user's action.
type health struct {
	ready, stalled  bool
	reason, message string
}

// diagnose returns the pool's health. If the pool has several problems, the problem that matters
// most to users is reported.
func diagnose(pool *tidekeeperv1.NodePool, v *state.PoolSnapshot, notOwned string) health {
	switch {
	case !pool.DeletionTimestamp.IsZero():
		message := fmt.Sprintf("removing the pool's settings from %s", nodeCount(v.OwnedNodes))
		if v.Refused > 0 {
			message += "; " + blockedMessage(v)
		}
		return health{reason: tidekeeperv1.ReasonDeleting, message: message}
	case v.Invalid != nil:
		return health{stalled: true, reason: tidekeeperv1.ReasonInvalidSelector, message: v.Invalid.Error()}
	case notOwned != "":
		return health{stalled: true, reason: tidekeeperv1.ReasonRuntimeClassConflict, message: notOwned}
	case v.Refused > 0:
		return health{stalled: true, reason: tidekeeperv1.ReasonNodePatchRefused, message: blockedMessage(v)}
	case v.Conflicted > 0:
		return health{stalled: true, reason: tidekeeperv1.ReasonConflicted, message: conflictMessage(v)}
	case v.Blocked > 0:
		return health{reason: tidekeeperv1.ReasonEvictionBlocked, message: outOfSyncMessage(v)}
	case v.Outdated > 0:
		return health{reason: tidekeeperv1.ReasonOutOfSync, message: outOfSyncMessage(v)}
	case v.Nodes == 0:
		return health{ready: true, reason: tidekeeperv1.ReasonNoNodes,
			message: fmt.Sprintf("no node matches the selector %s", selectorText(pool))}
	case v.Ready < v.Nodes:
		return health{ready: true, reason: tidekeeperv1.ReasonNodesNotReady,
			message: fmt.Sprintf("%d of %s %s not Ready", v.Nodes-v.Ready, nodeCount(v.Nodes), plural(v.Nodes-v.Ready, "is", "are"))}
	default:
		return health{ready: true, reason: tidekeeperv1.ReasonHealthy,
			message: fmt.Sprintf("%s %s Ready and %s the pool's spec", nodeCount(v.Nodes), plural(v.Nodes, "is", "are"), plural(v.Nodes, "matches", "match"))}
	}
}

// outOfSyncMessage describes the number of nodes that do not match the pool's spec, and why they
// have to wait.
func outOfSyncMessage(v *state.PoolSnapshot) string {
	message := fmt.Sprintf("%d of %s %s not match the pool's spec yet", v.Outdated, nodeCount(v.Nodes), plural(v.Outdated, "does", "do"))
	if v.EvictionPending > 0 {
		message += fmt.Sprintf("; %d of them %s for %s", v.EvictionPending, plural(v.EvictionPending, "waits", "wait"), cmp.Or(v.HeldBackBy, "a turn to get a NoExecute taint"))
	}
	if v.Emptying > 0 {
		message += fmt.Sprintf("; %d of them %s being emptied within budgets", v.Emptying, plural(v.Emptying, "is", "are"))
		if v.HeldBackBy != "" {
			message += ", held back by " + v.HeldBackBy
		}
	}
	if b := v.LongestBlocked; b != nil {
		message += "; " + blockedNodeMessage(b.Node, b.Pods, b.Pod, b.Message)
	}
	return message
}

func nodeCount(n int) string {
	return fmt.Sprintf("%d %s", n, plural(n, "node", "nodes"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func selectorText(pool *tidekeeperv1.NodePool) string {
	selector, err := plan.Selector(pool)
	if err != nil {
		return err.Error()
	}
	return selector.String()
}

func blockedMessage(v *state.PoolSnapshot) string {
	where := "node " + v.RefusedNode
	if v.Refused > 1 {
		where = fmt.Sprintf("%d nodes, for instance %s", v.Refused, where)
	}
	return fmt.Sprintf("cannot write %s: %s", where, v.RefusedReason)
}

func conflictMessage(v *state.PoolSnapshot) string {
	where := "node " + v.FirstConflict.Node
	if v.Conflicted > 1 {
		where = fmt.Sprintf("%d nodes, for instance %s", v.Conflicted, where)
	}
	return fmt.Sprintf("%s: the older pool %s has %s; change one of the pools", where, v.FirstConflict.Owner, v.FirstConflict.Key)
}

// whenToWrite reports whether to write the pool's status now. If not, it returns the time after
// which to check again, or 0 if the status has not changed. Newly managed keys are written
// immediately, because nodes wait for these keys. A status in which only the utilization has
// changed is written at most once per `interval`; any other change is written at most once per
// [urgentInterval].
func whenToWrite(before, after *tidekeeperv1.NodePoolStatus, last, now time.Time, interval time.Duration) (bool, time.Duration) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, 0
	}
	if managesMore(before, after) {
		return true, 0
	}
	if !equality.Semantic.DeepEqual(withoutUtilization(before), withoutUtilization(after)) {
		interval = min(interval, urgentInterval)
	}
	if wait := last.Add(interval).Sub(now); wait > 0 {
		return false, wait
	}
	return true, 0
}

func managesMore(before, after *tidekeeperv1.NodePoolStatus) bool {
	known := sets.New(slices.Collect(setting.KeysOf(&before.Managed))...)
	for key := range setting.KeysOf(&after.Managed) {
		if !known.Has(key) {
			return true
		}
	}
	return false
}

func withoutUtilization(status *tidekeeperv1.NodePoolStatus) *tidekeeperv1.NodePoolStatus {
	rest := *status
	rest.Capacity, rest.Allocatable, rest.Requested, rest.RequestedPercent = nil, nil, nil, nil
	rest.Usable, rest.Free, rest.LargestFits = nil, nil, nil
	rest.Lost = slices.DeleteFunc(slices.Clone(rest.Lost), func(l tidekeeperv1.Lost) bool { return l.Cause == tidekeeperv1.LostPodLimitReached })
	for i := range rest.Lost {
		rest.Lost[i].Resources = nil
	}
	rest.Summary = tidekeeperv1.UtilizationSummary{}
	return &rest
}
