// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// method is a simpler way to answer how many copies fit.
type method struct {
	name   string
	copies func(w *world) int64
}

// arithmetic returns the methods that dashboards and plugins use: they compare requests with what is
// free, and know nothing of taints, selectors or other pods.
func arithmetic() []method {
	return []method{
		{"all free requests of the pool", func(w *world) int64 {
			sum := corev1.ResourceList{}
			for _, n := range w.nodes {
				for name, amount := range w.free(n) {
					total := sum[name]
					total.Add(amount)
					sum[name] = total
				}
			}
			return fits(sum, w.copy)
		}},
		{"free requests of each node", func(w *world) (sum int64) {
			for _, n := range w.nodes {
				sum += fits(w.free(n), w.copy)
			}
			return sum
		}},
		{"the largest node, times nodes", func(w *world) (most int64) {
			for _, n := range w.nodes {
				most = max(most, fits(w.free(n), w.copy))
			}
			return most * int64(len(w.nodes))
		}},
	}
}

// fit returns how many copies of the world's pod fit on all of its nodes.
func (w *world) fit() capacity.Fit {
	names := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		names[i] = n.Name
	}
	return capacity.New(w.nodes, w.pods).WithVolumes(w.seen()).Members(names).Fit(w.copy)
}

// free returns the CPU and memory of a node that no pod requests.
func (w *world) free(n *corev1.Node) corev1.ResourceList {
	free := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		amount := n.Status.Allocatable[name].DeepCopy()
		for _, pod := range w.pods {
			if pod.Spec.NodeName == n.Name {
				amount.Sub(pod.Spec.Containers[0].Resources.Requests[name])
			}
		}
		free[name] = amount
	}
	return free
}

// fits returns how many times the pod's requests fit into free resources.
func fits(free corev1.ResourceList, pod *corev1.Pod) int64 {
	copies := int64(math.MaxInt64)
	for name, amount := range pod.Spec.Containers[0].Resources.Requests {
		left := free[name]
		copies = min(copies, max(0, left.MilliValue())/amount.MilliValue())
	}
	return copies
}
