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

// Amounts of resources follow the scheduler's arithmetic: they are whole numbers, in millicores for
// cpu and in base units for other resources, with fractions rounded up. Running sums of whole
// numbers stay exact when amounts are subtracted again.

// amountLimit is the upper bound of a single amount. It prevents sums from overflowing, regardless
// of the requests that users specify for their pods.
const amountLimit = int64(1) << 50

// Pods may request, and kubelets may report, resources with arbitrary names. A resource is
// therefore counted only if a node offers it, and the number of resources is limited.
const (
	// maxNodeResources is the maximum number of resources counted for a node.
	maxNodeResources = 64
	// maxPoolResources is the maximum number of resources in a pool's status.
	maxPoolResources = 128
)

// Amount is an amount of a resource, in millicores for cpu and in base units for other resources.
type Amount struct {
	Resource corev1.ResourceName
	Value    int64
}

// AmountsOf converts a resource list to amounts, sorted by resource name.
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

// CompareNames orders resource names: cpu first, then memory, then other resources alphabetically.
func CompareNames(a, b corev1.ResourceName) int {
	weight := func(name corev1.ResourceName) int {
		switch name {
		case corev1.ResourceCPU:
			return 0
		case corev1.ResourceMemory:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a, b))
}

// IsSecondary reports whether a resource rarely determines where a pod fits. This applies to pods
// and ephemeral-storage. The status of a pool does not report the node with the most of a secondary
// resource free, and [Text] omits secondary resources.
func IsSecondary(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage
}

// ValueOf returns the amount of a resource in a list sorted by resource name, or 0 if the list does
// not contain the resource.
func ValueOf(list []Amount, name corev1.ResourceName) int64 {
	if i, found := slices.BinarySearchFunc(list, Amount{Resource: name}, CompareAmounts); found {
		return list[i].Value
	}
	return 0
}

// Offered returns the capacity and the allocatable resources of a node. If the node has more than
// [maxNodeResources] resources, it keeps the standard resources, and then other resources by name
// up to the limit.
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

// NamesIn returns the sorted names of the resources in either list, without duplicates.
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

// onEveryNode reports whether the resource is a standard resource, which every node offers.
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

// countOf converts a quantity to a whole number. Negative quantities become 0. The limit is checked
// before the conversion, because a quantity that exceeds an int64 would be converted to an
// arbitrary number.
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

// RequestList returns the effective requests of a pod. The options match the scheduler's behavior
// with default feature gates.
func RequestList(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
}

// Requests returns the amounts that a pod requests, including a unit of the resource "pods" for the
// pod itself.
func Requests(pod *corev1.Pod) []Amount {
	list := RequestList(pod)
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return AmountsOf(list)
}
