// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Taints returns the taints that the pool puts on its nodes.
func Taints(pool *tidekeeperv1.NodePool) []corev1.Taint {
	taints := make([]corev1.Taint, len(pool.Spec.Taints))
	for i, t := range pool.Spec.Taints {
		taints[i] = corev1.Taint{Key: t.Key, Value: string(t.Value), Effect: t.Effect}
	}
	return taints
}

// NoExecuteTaints returns the pool's NoExecute taints, or nil.
func NoExecuteTaints(pool *tidekeeperv1.NodePool) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range pool.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, corev1.Taint{Key: t.Key, Value: string(t.Value), Effect: t.Effect})
		}
	}
	return taints
}

// EvictionDelay reports whether the taints evict the pod, and how long after they are added to
// its node. If several tolerations match a taint, the first counts, as in Kubernetes' taint
// eviction controller.
func EvictionDelay(pod *corev1.Pod, taints []corev1.Taint) (after time.Duration, evicted bool) {
	if pods.IsTerminal(pod) {
		return 0, false
	}
	return EvictionDelayOf(pod.Spec.Tolerations, taints)
}

// EvictionDelayOf is [EvictionDelay] for a pod with these tolerations.
func EvictionDelayOf(tolerations []corev1.Toleration, taints []corev1.Taint) (after time.Duration, evicted bool) {
	for _, taint := range taints {
		i := nodes.FirstTolerating(tolerations, &taint)
		if i < 0 {
			return 0, true
		}
		limit := tolerations[i].TolerationSeconds
		if limit == nil {
			continue
		}
		// More than a few centuries would overflow a Duration.
		wait := time.Duration(min(max(*limit, 0), 100*365*24*3600)) * time.Second
		if !evicted || wait < after {
			after, evicted = wait, true
		}
	}
	return after, evicted
}

// HasTaint reports whether a taint on a node is in the pool's spec. A taint with another value
// belongs to another pool, or to an earlier spec of this pool.
func HasTaint(pool *tidekeeperv1.NodePool, on *corev1.Taint) bool {
	return slices.ContainsFunc(pool.Spec.Taints, func(t tidekeeperv1.Taint) bool {
		return t.Key == on.Key && t.Effect == on.Effect && string(t.Value) == on.Value
	})
}

// LatestTaint returns the latest timeAdded of the taints; zero if no taint has a timeAdded.
func LatestTaint(taints []corev1.Taint) time.Time {
	var last time.Time
	for _, t := range taints {
		if t.TimeAdded != nil && t.TimeAdded.After(last) {
			last = t.TimeAdded.Time
		}
	}
	return last
}

// TaintsKey returns a string that is equal for equal lists of taints.
func TaintsKey(taints []corev1.Taint) string {
	var key strings.Builder
	for _, t := range taints {
		key.WriteString(t.Key + "=" + t.Value + ";") // Neither keys nor values can contain = or ;.
	}
	return key.String()
}
