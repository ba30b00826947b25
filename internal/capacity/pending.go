// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Group is a group of pending pods that are alike to the scheduler.
type Group struct {
	Pods []*corev1.Pod
}

// groupsOf returns groups of pods that are alike: the largest group first, then by namespace and name of the
// first pod.
func groupsOf(pending []*corev1.Pod) []Group {
	byKey := map[string]*Group{}
	var groups []*Group
	for _, pod := range pending {
		key := signature(pod)
		if byKey[key] == nil {
			byKey[key] = &Group{}
			groups = append(groups, byKey[key])
		}
		byKey[key].Pods = append(byKey[key].Pods, pod)
	}
	list := make([]Group, len(groups))
	for i, g := range groups {
		slices.SortFunc(g.Pods, comparePods)
		list[i] = *g
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(b.Pods), len(a.Pods)), comparePods(a.Pods[0], b.Pods[0]))
	})
	return list
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// signature returns the same text for pods that are alike: with equal namespace, requests, node selector,
// affinity, tolerations, and unevaluated constraints.
func signature(pod *corev1.Pod) string {
	shape := ShapeOf(pod)
	text, err := json.Marshal([]any{
		pod.Namespace, resources.Requests(pod), pod.Spec.NodeSelector, pod.Spec.Affinity, pod.Spec.Tolerations, shape.Unevaluated,
	})
	if err != nil {
		return pod.Namespace + "/" + pod.Name // A text that no other pod has.
	}
	return string(text)
}
