// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// free is what is left on a node: millicores, bytes and pods.
type free struct{ cpu, memory, pods int64 }

func (f free) less(g free) free { return free{f.cpu - g.cpu, f.memory - g.memory, f.pods - g.pods} }

// has reports whether there is as much as is requested. Of what is not, less than nothing may
// be left.
func (f free) has(g free) bool {
	return (g.cpu == 0 || f.cpu >= g.cpu) && (g.memory == 0 || f.memory >= g.memory) && f.pods >= g.pods
}

// requestOf is what a pod of one container requests.
func requestOf(p corev1.Pod) free {
	r := p.Spec.Containers[0].Resources.Requests
	return free{r.Cpu().MilliValue(), r.Memory().Value(), 1}
}

// takes reports whether a node takes pods of [world.small], by its labels and taints.
func takes(n corev1.Node, p corev1.Pod) bool {
	for key, value := range p.Spec.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool {
			return o.Key == t.Key && o.Operator == corev1.TolerationOpExists && (o.Effect == "" || o.Effect == t.Effect)
		})
	})
}

// leastWithoutPlace returns how many of the lost pods the best of all placements on the nodes
// that are left leaves without place. It tries them all.
func leastWithoutPlace(w *world, lost, left []corev1.Pod, gone []string) int {
	var nodes []corev1.Node
	var room []free
	for _, n := range w.nodes {
		if slices.Contains(gone, n.Name) {
			continue
		}
		a := n.Status.Allocatable
		f := free{a.Cpu().MilliValue(), a.Memory().Value(), a.Pods().Value()}
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
