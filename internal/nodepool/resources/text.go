// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Text returns amounts as people say them, "6 CPU, 11Gi memory, 1 nvidia.com/gpu": CPU and
// memory, and the others of which there is something, by name. The number of pods and ephemeral
// storage, which are seldom what is lacking, are left out.
func Text(list corev1.ResourceList) string {
	var texts []string
	add := func(name corev1.ResourceName) {
		label := string(name)
		if name == corev1.ResourceCPU {
			label = "CPU"
		}
		texts = append(texts, Human(name, list[name])+" "+label)
	}
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, name := range first {
		if _, has := list[name]; has {
			add(name)
		}
	}
	var others []corev1.ResourceName
	for name, amount := range list {
		if !slices.Contains(first, name) && name != corev1.ResourcePods && name != corev1.ResourceEphemeralStorage && !amount.IsZero() {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		add(name)
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, ", ")
}
