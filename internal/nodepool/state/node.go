// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/load"
)

// node is an existing node.
type node struct {
	name   string
	object *corev1.Node
	figures

	// pools are the pools that select the node.
	pools []*pool
	// record is the ownership record on the node; empty if it is unreadable.
	record     ownership.Record
	unreadable bool
	// refused are the pools whose settings the API server refuses for this node.
	refused sets.Set[string]
	// summary is the summary of the plan for the node.
	summary plan.Summary
	// limiter limits the writes of the node; nil before the first write.
	limiter *rate.Limiter
}

// difference marks the parts of a node that a new version changes.
type difference struct {
	amounts, taints, labels, annotations, record, unschedulable, going bool
}

// differenceOf compares two versions of a node; before is nil for the first version. It is
// called for each heartbeat, so it must be cheap.
func differenceOf(before, now *corev1.Node) difference {
	if before == nil {
		return difference{true, true, true, true, true, true, true}
	}
	return difference{
		amounts:       !sameAmounts(before.Status.Capacity, now.Status.Capacity) || !sameAmounts(before.Status.Allocatable, now.Status.Allocatable),
		taints:        !equality.Semantic.DeepEqual(before.Spec.Taints, now.Spec.Taints),
		labels:        !maps.Equal(before.Labels, now.Labels),
		annotations:   !maps.Equal(before.Annotations, now.Annotations),
		record:        before.Annotations[tidekeeperv1.OwnershipAnnotation] != now.Annotations[tidekeeperv1.OwnershipAnnotation],
		unschedulable: before.Spec.Unschedulable != now.Spec.Unschedulable,
		going:         before.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero(),
	}
}

// sameAmounts reports whether two lists are equal.
func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, resource.Quantity.Equal)
}

// named returns the names of the pools that appear in either summary, and of the pools whose
// settings the API server refuses for the node.
func (n *node) named(before, now *plan.Summary) []string {
	var names []string
	add := func(list []string) {
		for _, name := range list {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, s := range []*plan.Summary{before, now} {
		add(s.Outdated)
		add(s.EvictionPending)
		add(s.Evicting)
		add(s.AnnotationsFull)
		for _, c := range s.Conflicts {
			if !slices.Contains(names, c.Pool) {
				names = append(names, c.Pool)
			}
		}
	}
	for name := range n.refused {
		add([]string{name})
	}
	return names
}

// allowWrite reports whether the node may be written now. If so, it counts as a write.
func (n *node) allowWrite(now time.Time) bool {
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(rate.Every(plan.WriteInterval), plan.WriteBurst)
	}
	return n.limiter.AllowN(now, 1)
}

// evictingTaints returns the NoExecute taints on the node that are in a pool's spec.
func (n *node) evictingTaints() []corev1.Taint {
	var taints []corev1.Taint
	for _, on := range n.object.Spec.Taints {
		if on.Effect == corev1.TaintEffectNoExecute && slices.ContainsFunc(n.pools, func(p *pool) bool { return plan.HasTaint(p.object, &on) }) {
			taints = append(taints, on)
		}
	}
	return taints
}

// evictionDelays maps profiles to the time until taints evict their pods, by the key of the
// taints; -1 means never.
type evictionDelays map[*load.Profile]map[string]time.Duration

// affectedPods returns the number of pods of the node that the taints evict: at any time if
// ever is set, otherwise within maxDuration. The delay of each profile is kept in delays for
// the next node.
func (n *node) affectedPods(taints []corev1.Taint, delays evictionDelays, maxDuration time.Duration, ever bool) (count int) {
	if len(taints) == 0 {
		return 0
	}
	key := plan.TaintsKey(taints)
	for p, pods := range n.load.Pods() {
		after, known := delays[p][key]
		if !known {
			var evicted bool
			if after, evicted = plan.EvictionDelayOf(p.Tolerations, taints); !evicted {
				after = -1
			}
			if delays[p] == nil {
				delays[p] = map[string]time.Duration{}
			}
			delays[p][key] = after
		}
		if after >= 0 && (ever || after < maxDuration) {
			count += pods
		}
	}
	return count
}
