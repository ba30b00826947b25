// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources counts the resources that nodes offer and pods request: amounts, their
// sums, and the utilization of a pool.
package resources

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReportedNames returns the resources that the status of a pool reports: resources that its
// members offer. If there are more than [maxPoolResources], the standard resources of every
// node come first, and then the resources that the most members offer.
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

// Percent returns the utilization: requested in whole percent of allocatable, rounded down. A
// resource of which nothing is allocatable is left out.
func Percent(requested, allocatable Sums) map[corev1.ResourceName]int32 {
	percent := map[corev1.ResourceName]int32{}
	for name, sum := range allocatable {
		if sum.Value <= 0 {
			continue
		}
		// The product may exceed an int64.
		p := new(big.Int).Mul(big.NewInt(requested[name].Value), big.NewInt(100))
		p.Div(p, big.NewInt(sum.Value))
		percent[name] = math.MaxInt32
		if p.IsInt64() && p.Int64() < math.MaxInt32 {
			percent[name] = int32(p.Int64())
		}
	}
	return percent
}
