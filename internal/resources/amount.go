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

// Resources are counted as the scheduler counts them: in whole numbers, cpu in millicores and
// all others in units, with fractions rounded up. Running sums rely on whole numbers, which can
// be subtracted again exactly.

// amountLimit is the maximum that a pod or node counts for, so that sums cannot overflow
// whatever requests users write into a pod.
const amountLimit = int64(1) << 50

// A pod may request any resource name, and a kubelet may report any name in the status of its
// node. So a resource counts only if a node offers it, and the number of resources is limited.
const (
	// maxNodeResources is the maximum number of resources of a node that count.
	maxNodeResources = 64
	// maxPoolResources is the maximum number of resources in the status of a pool.
	maxPoolResources = 128
)

// Amount is an amount of one resource.
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

// CompareNames orders resources: cpu, memory, then the others by name.
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

// IsSecondary reports whether a resource seldom decides on which node a pod fits: pods and
// ephemeral-storage. Neither largest fits nor texts take secondary resources into account.
func IsSecondary(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage
}

// ValueOf returns the amount of a resource in a list sorted by resource name; 0 if the resource
// is missing.
func ValueOf(list []Amount, name corev1.ResourceName) int64 {
	if i, found := slices.BinarySearchFunc(list, Amount{Resource: name}, CompareAmounts); found {
		return list[i].Value
	}
	return 0
}

// Offered returns the capacity and the allocatable resources of a node. If the node has more
// than [maxNodeResources] resources, the standard resources of every node count first, then the
// others by name up to the limit.
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

// onEveryNode reports whether every node offers the resource.
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

// countOf returns the whole number that a quantity counts for. The quantity is compared with
// the limit before the conversion, because a quantity beyond int64 converts to an arbitrary
// number. A negative quantity counts as 0.
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

// RequestList returns the effective requests of a pod. The options match the scheduler with its
// default feature gates.
func RequestList(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
}

// Requests returns the requests of a pod as amounts, with the pod itself as one unit of pods.
func Requests(pod *corev1.Pod) []Amount {
	list := RequestList(pod)
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return AmountsOf(list)
}
