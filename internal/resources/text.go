// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Text formats amounts, such as "6 CPU, 11Gi memory, 1 nvidia.com/gpu". CPU and memory come first,
// followed by other resources by name. The resources pods and ephemeral-storage are left out, and
// so are zero amounts of resources other than CPU and memory.
func Text(list corev1.ResourceList) string {
	return textOf(list, IsSecondary)
}

// TextOfRequests formats the amounts that a user has requested, including secondary resources such
// as ephemeral storage. The resource "pods" is left out, because it only counts the pod itself.
func TextOfRequests(list corev1.ResourceList) string {
	return textOf(list, func(name corev1.ResourceName) bool { return name == corev1.ResourcePods })
}

// textOf formats amounts except for the omitted resources. Zero amounts are included only for CPU
// and memory.
func textOf(list corev1.ResourceList, omitted func(corev1.ResourceName) bool) string {
	var texts []string
	for _, name := range slices.SortedFunc(maps.Keys(list), CompareNames) {
		amount, label := list[name], string(name)
		switch {
		case name == corev1.ResourceCPU:
			label = "CPU"
		case name == corev1.ResourceMemory:
		case amount.IsZero() || omitted(name):
			continue
		}
		texts = append(texts, Human(name, amount)+" "+label)
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, ", ")
}
