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

// node is an existing node, with the state derived from it.
type node struct {
	name   string
	object *corev1.Node
	figures

	// pools lists the pools that select the node.
	pools []*pool
	// recorded is the content of the node's ownership annotation.
	recorded ownership.Annotation
	// refused is the set of pools whose settings the API server rejects for this node.
	refused sets.Set[string]
	// summary is derived from the latest plan for the node.
	summary plan.Summary
	// emptying is the progress of emptying the node within budgets, if it is being emptied.
	emptying EmptyingProgress
	// limiter limits the writes of the node. It is nil before the first write.
	limiter *rate.Limiter
}

// difference has a field for each part of a node, which is true if that part differs between two
// versions of the node. record is the ownership annotation. going is true if only the second
// version is being deleted, or only the first.
type difference struct {
	amounts, taints, labels, annotations, record, unschedulable, going bool
}

// differenceOf compares two versions of a node. before is nil for the first version. The function
// must be cheap, because it is called for every heartbeat of a node.
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

// sameAmounts reports whether two resource lists are equal.
func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, resource.Quantity.Equal)
}

// named returns the names of the pools that appear in either plan summary, and of the pools whose
// settings the API server rejects for the node.
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

// allowWrite reports whether the rate limit permits a write of the node now. A permitted write
// counts towards the limit.
func (n *node) allowWrite(now time.Time) bool {
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(rate.Every(plan.WriteInterval), plan.WriteBurst)
	}
	return n.limiter.AllowN(now, 1)
}

// evictingTaints returns the node's NoExecute taints that are in the spec of any of its pools.
func (n *node) evictingTaints() []corev1.Taint {
	var taints []corev1.Taint
	for _, on := range n.object.Spec.Taints {
		if on.Effect == corev1.TaintEffectNoExecute && slices.ContainsFunc(n.pools, func(p *pool) bool { return plan.HasTaint(p.object, &on) }) {
			taints = append(taints, on)
		}
	}
	return taints
}

// evictionDelays caches the time after which taints evict pods, keyed by the pods' profile and by
// the [plan.TaintsKey] of the taints. The value -1 means that the pods are never evicted.
type evictionDelays map[*load.Profile]map[string]time.Duration

// affectedPods returns the number of the node's pods that the taints evict. If `ever` is set, it
// counts evictions after any delay; if not, only evictions within maxDuration. delays caches the
// delay of each profile for use with other nodes.
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
