// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import corev1 "k8s.io/api/core/v1"

// For those who look at pools from outside, as the kubectl plugin does.

// Level returns what pods request of a node, counted as the pool's status
// counts it, and the share of what the node has for pods, in whole percent.
func Level(node *corev1.Node, pods []*corev1.Pod) (requested corev1.ResourceList, percent map[corev1.ResourceName]int32) {
	r := newRegistry()
	var allocatable, sum sums
	allocatable.add(r.amounts(node.Status.Allocatable))
	for _, pod := range pods {
		if !terminal(pod) {
			sum.add(r.requests(pod))
		}
	}
	return r.list(sum), r.percent(sum, allocatable)
}
