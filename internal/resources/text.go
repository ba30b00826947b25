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
	return textOf(list, IsSecondary)
}

// TextOfRequests returns the amounts that a user has asked for as text, secondary resources such as
// ephemeral storage included. The pod itself is not one of them.
func TextOfRequests(list corev1.ResourceList) string {
	return textOf(list, func(name corev1.ResourceName) bool { return name == corev1.ResourcePods })
}

// textOf returns amounts as text, except omitted resources and zero amounts.
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
