// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Text returns amounts as text, "6 CPU, 11Gi memory, 1 nvidia.com/gpu": CPU, memory, and the
// other resources by name, except secondary resources and zero amounts.
func Text(list corev1.ResourceList) string {
	var texts []string
	for _, name := range slices.SortedFunc(maps.Keys(list), CompareNames) {
		amount, label := list[name], string(name)
		switch {
		case name == corev1.ResourceCPU:
			label = "CPU"
		case name == corev1.ResourceMemory:
		case amount.IsZero() || IsSecondary(name):
			continue
		}
		texts = append(texts, Human(name, amount)+" "+label)
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, ", ")
}
