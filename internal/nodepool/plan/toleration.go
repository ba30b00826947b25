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

// Taints returns the taints that the pool may put on nodes. These are the taints in its spec, and
// its closing taints, which keep new pods away from nodes that are being emptied.
func Taints(pool *tidekeeperv1.NodePool) []corev1.Taint {
	taints := make([]corev1.Taint, len(pool.Spec.Taints))
	for i, t := range pool.Spec.Taints {
		taints[i] = onNode(t)
	}
	return slices.AppendSeq(taints, closingTaints(pool))
}

// onNode converts a taint of a pool's spec to the form in which nodes have it.
func onNode(t tidekeeperv1.Taint) corev1.Taint {
	return corev1.Taint{Key: t.Key, Value: string(t.Value), Effect: t.Effect}
}

// NoExecuteTaints returns the NoExecute taints in the pool's spec, or nil if there are none.
func NoExecuteTaints(pool *tidekeeperv1.NodePool) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range pool.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, onNode(t))
		}
	}
	return taints
}

// EvictionDelay reports whether the taints evict the pod, and returns the time between the addition
// of the taints and the eviction. As in Kubernetes' taint eviction controller, only the first
// toleration that matches a taint counts.
func EvictionDelay(pod *corev1.Pod, taints []corev1.Taint) (after time.Duration, evicted bool) {
	if pods.IsTerminal(pod) {
		return 0, false
	}
	return EvictionDelayOf(pod.Spec.Tolerations, taints)
}

// EvictionDelayOf is [EvictionDelay] for a running pod that has the given tolerations.
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
		// The tolerationSeconds are limited to 100 years, because a time.Duration would overflow
		// after about 292 years.
		wait := time.Duration(min(max(*limit, 0), 100*365*24*3600)) * time.Second
		if !evicted || wait < after {
			after, evicted = wait, true
		}
	}
	return after, evicted
}

// HasTaint reports whether the given taint of a node is in the pool's spec. A taint with another
// value belongs to another pool, or to an earlier spec of this pool.
func HasTaint(pool *tidekeeperv1.NodePool, on *corev1.Taint) bool { return TaintOf(pool, on) != nil }

// TaintOf returns the taint of the pool's spec that equals the given taint of a node, or nil if
// there is none.
func TaintOf(pool *tidekeeperv1.NodePool, on *corev1.Taint) *tidekeeperv1.Taint {
	for i := range pool.Spec.Taints {
		if t := &pool.Spec.Taints[i]; t.Key == on.Key && t.Effect == on.Effect && string(t.Value) == on.Value {
			return t
		}
	}
	return nil
}

// LatestTaint returns the latest timeAdded of the taints, or zero if none of them has a timeAdded.
func LatestTaint(taints []corev1.Taint) time.Time {
	var last time.Time
	for _, t := range taints {
		if t.TimeAdded != nil && t.TimeAdded.After(last) {
			last = t.TimeAdded.Time
		}
	}
	return last
}

// TaintsKey returns a string that identifies a list of NoExecute taints. It is equal for lists with
// the same taint keys and values in the same order.
func TaintsKey(taints []corev1.Taint) string {
	var key strings.Builder
	for _, t := range taints {
		key.WriteString(t.Key + "=" + t.Value + ";") // Neither keys nor values can contain an equals sign or a semicolon.
	}
	return key.String()
}
