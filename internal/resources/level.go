// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources computes the amounts of resources that nodes offer and pods request, the sums
// of these amounts, and the utilization of a pool.
package resources

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReportedNames returns the resources to report in a pool's status, which are the resources that
// its member nodes offer. If there are more than [maxPoolResources], the standard resources are
// kept first, then the resources that most members offer.
func ReportedNames(capacity, allocatable Sums) []corev1.ResourceName {
	names := slices.AppendSeq(slices.Collect(maps.Keys(capacity)), maps.Keys(allocatable))
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) <= maxPoolResources {
		return names
	}
	slices.SortFunc(names, func(a, b corev1.ResourceName) int {
		return cmp.Or(
			compareBool(onEveryNode(b), onEveryNode(a)),
			cmp.Compare(max(capacity[b].Count, allocatable[b].Count), max(capacity[a].Count, allocatable[a].Count)),
			cmp.Compare(a, b))
	})
	return names[:maxPoolResources]
}

// Percent returns the requested amount of each resource as a percentage of the allocatable amount,
// rounded down. Resources without an allocatable amount are left out.
func Percent(requested, allocatable Sums) map[corev1.ResourceName]int32 {
	percent := map[corev1.ResourceName]int32{}
	for name, sum := range allocatable {
		if sum.Value <= 0 {
			continue
		}
		// The sum multiplied by 100 may exceed an int64.
		p := new(big.Int).Mul(big.NewInt(requested[name].Value), big.NewInt(100))
		p.Div(p, big.NewInt(sum.Value))
		percent[name] = math.MaxInt32
		if p.IsInt64() && p.Int64() < math.MaxInt32 {
			percent[name] = int32(p.Int64())
		}
	}
	return percent
}
