// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// counted lists the resources that the tests' pods request. The last resource is the number of pods.
var counted = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpu, corev1.ResourcePods}

// free holds amounts of the resources in `counted`, in thousandths, such as a node's free amounts.
type free [len(counted)]int64

func freeOf(list corev1.ResourceList) (f free) {
	for i, name := range counted {
		q := list[name]
		f[i] = q.MilliValue()
	}
	return f
}

func (f free) less(g free) free {
	for i := range f {
		f[i] -= g[i]
	}
	return f
}

// has reports whether the amounts f suffice for the requests g. Resources that g does not request
// are ignored, because they may be overcommitted.
func (f free) has(g free) bool {
	for i := range f {
		if g[i] > 0 && f[i] < g[i] {
			return false
		}
	}
	return true
}

// requestOf returns the requests of a pod that has one container.
func requestOf(p corev1.Pod) free {
	f := freeOf(p.Spec.Containers[0].Resources.Requests)
	f[len(f)-1] = 1000
	return f
}

// takes reports whether a node accepts a pod, judging by the node's labels and taints.
func takes(n corev1.Node, p corev1.Pod) bool {
	for key, value := range p.Spec.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return affine(n, p) && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool {
			return o.Key == t.Key && o.Operator == corev1.TolerationOpExists && (o.Effect == "" || o.Effect == t.Effect)
		})
	})
}

// leastWithoutPlace tries all placements of the lost pods on the remaining nodes, and returns the
// smallest possible number of pods that fit nowhere.
func leastWithoutPlace(w *world, lost, left []corev1.Pod, gone []string) int {
	var nodes []corev1.Node
	var room []free
	for _, n := range w.nodes {
		if slices.Contains(gone, n.Name) {
			continue
		}
		f := freeOf(n.Status.Allocatable)
		for _, p := range left {
			if p.Spec.NodeName == n.Name {
				f = f.less(requestOf(p))
			}
		}
		nodes, room = append(nodes, n), append(room, f)
	}
	least := len(lost)
	var place func(i, without int)
	place = func(i, without int) {
		if without >= least {
			return
		}
		if i == len(lost) {
			least = without
			return
		}
		for k, n := range nodes {
			if request := requestOf(lost[i]); room[k].has(request) && takes(n, lost[i]) {
				before := room[k]
				room[k] = before.less(request)
				place(i+1, without)
				room[k] = before
			}
		}
		place(i+1, without+1)
	}
	place(0, 0)
	return least
}

// affine reports whether a pod's required node affinity matches a node.
func affine(n corev1.Node, p corev1.Pod) bool {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	matches := func(e corev1.NodeSelectorRequirement, value string, has bool) bool {
		a, errA := strconv.Atoi(value)
		b, errB := strconv.Atoi(cmp.Or(append(slices.Clone(e.Values), "")...))
		numbers := has && errA == nil && errB == nil
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			return has && slices.Contains(e.Values, value)
		case corev1.NodeSelectorOpNotIn:
			return !has || !slices.Contains(e.Values, value)
		case corev1.NodeSelectorOpExists:
			return has
		case corev1.NodeSelectorOpDoesNotExist:
			return !has
		case corev1.NodeSelectorOpGt:
			return numbers && a > b
		default:
			return numbers && a < b
		}
	}
	return slices.ContainsFunc(p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, e := range term.MatchExpressions {
			if value, has := n.Labels[e.Key]; !matches(e, value, has) {
				return false
			}
		}
		for _, e := range term.MatchFields {
			if !matches(e, n.Name, true) {
				return false
			}
		}
		return true
	})
}
