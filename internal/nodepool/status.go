// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// urgentInterval is the shortest time between two status writes about the same
// pool, however much happens.
const urgentInterval = time.Second

// newStatus returns the status that the pool should have. The message of
// foreign says why its RuntimeClass cannot be made, if so; now stamps the
// conditions that change.
func newStatus(pool *tidekeeperv1.NodePool, v *view, foreign string, managed tidekeeperv1.ManagedKeys, now time.Time) tidekeeperv1.NodePoolStatus {
	status := tidekeeperv1.NodePoolStatus{
		ObservedGeneration: pool.Generation,
		NodeCount:          int32(v.nodes),
		ReadyNodes:         int32(v.ready),
		Capacity:           v.capacity,
		Allocatable:        v.allocatable,
		Requested:          v.requested,
		RequestedPercent:   v.percent,
		Managed:            managed,
		Conditions:         slices.Clone(pool.Status.Conditions),
	}
	set := func(conditionType string, is bool, reason, message string) {
		condition := metav1.Condition{
			Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			ObservedGeneration: pool.Generation, LastTransitionTime: metav1.NewTime(now),
		}
		if is {
			condition.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}

	health := diagnose(pool, v, foreign)
	set(ConditionReady, health.ready, health.reason, health.message)
	if v.conflicted > 0 {
		set(ConditionConflicted, true, ReasonKeyTaken, conflictMessage(v))
	} else {
		set(ConditionConflicted, false, ReasonNoConflict, "no older pool has a key that this pool asks for")
	}
	// kstatus wants these two only while they are true.
	if health.stalled {
		set(ConditionStalled, true, health.reason, health.message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, ConditionStalled)
	}
	if v.unshaped > 0 || !pool.DeletionTimestamp.IsZero() {
		set(ConditionReconciling, true, health.reason, health.message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, ConditionReconciling)
	}
	return status
}

// health is the condition Ready, and whether somebody has to do something
// before it gets better.
type health struct {
	ready, stalled  bool
	reason, message string
}

// diagnose says how the pool is. The cases stand in the order of what a person
// needs to know first.
func diagnose(pool *tidekeeperv1.NodePool, v *view, foreign string) health {
	switch {
	case !pool.DeletionTimestamp.IsZero():
		return health{reason: ReasonDeleting,
			message: fmt.Sprintf("%s still to be cleaned of what the pool put there", nodesAre(v.carriers))}
	case v.invalid != nil:
		return health{stalled: true, reason: ReasonInvalidSelector, message: v.invalid.Error()}
	case foreign != "":
		return health{stalled: true, reason: ReasonRuntimeClassConflict, message: foreign}
	case v.conflicted > 0:
		return health{stalled: true, reason: ReasonConflicted, message: conflictMessage(v)}
	case v.heldBack > 0:
		return health{reason: ReasonUpdating,
			message: fmt.Sprintf("%d of %s to be brought up to date, %d of them wait for their turn with a NoExecute taint",
				v.unshaped, nodesAre(v.nodes), v.heldBack)}
	case v.unshaped > 0:
		return health{reason: ReasonUpdating,
			message: fmt.Sprintf("%d of %s to be brought up to date", v.unshaped, nodesAre(v.nodes))}
	case v.nodes == 0:
		return health{ready: true, reason: ReasonNoNodes,
			message: fmt.Sprintf("no node matches the selector %s", selectorText(pool))}
	case v.ready < v.nodes:
		return health{ready: true, reason: ReasonNodesNotReady,
			message: fmt.Sprintf("%d of %s not Ready", v.nodes-v.ready, nodesAre(v.nodes))}
	default:
		return health{ready: true, reason: ReasonHealthy,
			message: fmt.Sprintf("%s Ready and up to date", nodesAre(v.nodes))}
	}
}

func nodesAre(n int) string {
	if n == 1 {
		return "1 node is"
	}
	return fmt.Sprintf("%d nodes are", n)
}

func selectorText(pool *tidekeeperv1.NodePool) string {
	selector, err := Selector(pool)
	if err != nil {
		return err.Error()
	}
	return selector.String()
}

func conflictMessage(v *view) string {
	where := "node " + v.first.node
	if v.conflicted > 1 {
		where = fmt.Sprintf("%d nodes, for instance %s", v.conflicted, where)
	}
	return fmt.Sprintf("%s: the older pool %s has %s; change one of the pools", where, v.first.owner, v.first.slot)
}

// managedKeys returns the keys that the pool vouches for: those of its spec,
// and of those it vouched for before, the ones that keep says are still
// somewhere.
func managedKeys(pool *tidekeeperv1.NodePool, keep func(slot) bool) tidekeeperv1.ManagedKeys {
	all := sets.New[slot]()
	for s := range wants(pool) {
		all.Insert(s)
	}
	for s := range vouchedFor(pool) {
		if keep(s) {
			all.Insert(s)
		}
	}
	var managed tidekeeperv1.ManagedKeys
	for _, s := range slices.SortedFunc(maps.Keys(all), compareSlots) {
		switch s.kind {
		case label:
			managed.Labels = append(managed.Labels, s.key)
		case annotation:
			managed.Annotations = append(managed.Annotations, s.key)
		default:
			managed.Taints = append(managed.Taints, s.key)
		}
	}
	return managed
}

// vouchedFor yields every slot that the pool's status names as managed.
func vouchedFor(pool *tidekeeperv1.NodePool) iter.Seq[slot] {
	return func(yield func(slot) bool) {
		managed := &pool.Status.Managed
		for _, of := range []struct {
			kind kind
			keys []string
		}{{label, managed.Labels}, {annotation, managed.Annotations}, {taint, managed.Taints}} {
			for _, key := range of.keys {
				if !yield(slot{of.kind, key}) {
					return
				}
			}
		}
	}
}

// whenToWrite tells whether the status has to be written now, or after how
// long to ask again; neither if the old one will do. Keys that the pool begins
// to vouch for are written at once, as the nodes wait for them; a mere change
// of the water level at most once in an interval; everything else at once, but
// not more often than once in [urgentInterval].
func whenToWrite(before, after *tidekeeperv1.NodePoolStatus, last, now time.Time, interval time.Duration) (bool, time.Duration) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, 0
	}
	if vouchesForMore(before, after) {
		return true, 0
	}
	if !equality.Semantic.DeepEqual(withoutLevel(before), withoutLevel(after)) {
		interval = min(interval, urgentInterval)
	}
	if wait := last.Add(interval).Sub(now); wait > 0 {
		return false, wait
	}
	return true, 0
}

func vouchesForMore(before, after *tidekeeperv1.NodePoolStatus) bool {
	more := func(a, b []string) bool {
		return slices.ContainsFunc(b, func(key string) bool { return !slices.Contains(a, key) })
	}
	return more(before.Managed.Labels, after.Managed.Labels) ||
		more(before.Managed.Annotations, after.Managed.Annotations) ||
		more(before.Managed.Taints, after.Managed.Taints)
}

func withoutLevel(status *tidekeeperv1.NodePoolStatus) *tidekeeperv1.NodePoolStatus {
	rest := *status
	rest.Capacity, rest.Allocatable, rest.Requested, rest.RequestedPercent = nil, nil, nil, nil
	return &rest
}
