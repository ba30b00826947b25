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

// Group is a group of pending pods with equal requests and constraints.
type Group struct {
	Pods []*corev1.Pod
}

// groupsOf groups pods that the scheduler treats alike. The groups are sorted by descending number
// of pods, then by the namespace and name of their first pod.
//
// more returns a string that is equal for pods with equal constraints on volumes and, if there are
// constraints between the pod and other pods, with equal labels, because such constraints depend on
// labels.
func groupsOf(pending []*corev1.Pod, more func(*corev1.Pod) string) []Group {
	byKey := map[string]*Group{}
	var groups []*Group
	for _, pod := range pending {
		key := signature(pod) + more(pod)
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

// signature returns a string that is equal for pods with the same namespace, requests and
// constraints.
func signature(pod *corev1.Pod) string {
	shape := ShapeOf(pod)
	text, err := json.Marshal([]any{
		pod.Namespace, resources.Requests(pod), constraintsOf(&pod.Spec), shape.Unevaluated,
	})
	if err != nil {
		return pod.Namespace + "/" + pod.Name // a string unique to this pod
	}
	return string(text)
}
