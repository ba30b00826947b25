// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Resources are counted as the scheduler counts them: whole numbers, cpu in
// thousandths and everything else in units, a fraction rounded up. Whole
// numbers can be taken off again exactly, which is what running sums rest on.

// amountLimit bounds what one pod or node counts for, so that no sum of what
// people may write into a pod overflows.
const amountLimit = int64(1) << 50

// Whoever may create a pod may name any resource in it, and a kubelet any in the
// status of its node. So a resource counts only where a node offers it, and only so
// many of them do.
const (
	// maxNodeResources is how many resources of one node count.
	maxNodeResources = 64
	// maxPoolResources is how many resources the level of a pool shows.
	maxPoolResources = 128
)

// Amount is so much of one resource.
type Amount struct {
	Resource corev1.ResourceName
	Value    int64
}

// AmountsOf converts a resource list to amounts, in the order of their names.
func AmountsOf(list corev1.ResourceList) []Amount {
	out := make([]Amount, 0, len(list))
	for name, quantity := range list {
		out = append(out, Amount{name, countOf(name, quantity)})
	}
	slices.SortFunc(out, CompareAmounts)
	return out
}

// CompareAmounts orders amounts by the name of their resource.
func CompareAmounts(a, b Amount) int { return cmp.Compare(a.Resource, b.Resource) }

// Offered returns what a node has, in all and for pods. Of a node that names more
// than [maxNodeResources] the first of them count, those of every node before others.
func Offered(node *corev1.Node) (capacity, allocatable []Amount) {
	capacity, allocatable = AmountsOf(node.Status.Capacity), AmountsOf(node.Status.Allocatable)
	names := NamesIn(capacity, allocatable)
	if len(names) <= maxNodeResources {
		return capacity, allocatable
	}
	slices.SortFunc(names, func(a, b corev1.ResourceName) int {
		return cmp.Or(compareBool(onEveryNode(b), onEveryNode(a)), cmp.Compare(a, b))
	})
	counted := sets.New(names[:maxNodeResources]...)
	other := func(a Amount) bool { return !counted.Has(a.Resource) }
	return slices.DeleteFunc(capacity, other), slices.DeleteFunc(allocatable, other)
}

// NamesIn returns the names of the resources in two lists of amounts, each once.
func NamesIn(a, b []Amount) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, max(len(a), len(b)))
	for _, list := range [][]Amount{a, b} {
		for _, amount := range list {
			names = append(names, amount.Resource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// onEveryNode reports whether every node has the resource.
func onEveryNode(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		return true
	}
	return false
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return +1
	default:
		return -1
	}
}

// countOf returns what a quantity of a resource counts for. It is compared before
// it is converted: a quantity may be more than an int64 can hold, and comes out
// as anything then. What is negative counts for nothing.
func countOf(name corev1.ResourceName, q resource.Quantity) int64 {
	limit := amountLimit
	if name == corev1.ResourceCPU {
		limit /= 1000
	}
	switch {
	case q.Sign() <= 0:
		return 0
	case q.CmpInt64(limit) >= 0:
		return amountLimit
	case name == corev1.ResourceCPU:
		return q.MilliValue()
	default:
		return q.Value()
	}
}

// Requests returns what a pod requests, the pod itself included. The options
// are those of the scheduler with the feature gates that are on by default.
func Requests(pod *corev1.Pod) []Amount {
	list := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return AmountsOf(list)
}
