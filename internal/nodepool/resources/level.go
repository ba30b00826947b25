// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources counts what nodes offer and what pods request: amounts, their sums,
// and the percentages that a pool shows.
package resources

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/pods"
)

// ReportedNames returns the resources that the level of a pool shows: those that its
// members offer. If these are more than [maxPoolResources], what every node has comes
// first, and then what most members offer.
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

// Percent returns requested as whole percent of allocatable, rounded down, for
// every resource of which something is allocatable: the water level.
func Percent(requested, allocatable Sums) map[corev1.ResourceName]int32 {
	level := map[corev1.ResourceName]int32{}
	for name, of := range allocatable {
		if of.Value <= 0 {
			continue
		}
		// A product of two 64-bit numbers does not fit in one.
		p := new(big.Int).Mul(big.NewInt(requested[name].Value), big.NewInt(100))
		p.Div(p, big.NewInt(of.Value))
		level[name] = math.MaxInt32
		if p.IsInt64() && p.Int64() < math.MaxInt32 {
			level[name] = int32(p.Int64())
		}
	}
	return level
}

// Level returns what pods request of a node, counted as the pool's status
// counts it, and the share of what the node has for pods, in whole percent.
func Level(node *corev1.Node, list []*corev1.Pod) (requested corev1.ResourceList, percent map[corev1.ResourceName]int32) {
	capacity, has := Offered(node)
	var offered, allocatable, sum Sums
	offered.Add(capacity)
	allocatable.Add(has)
	for _, pod := range list {
		if !pods.IsTerminal(pod) {
			sum.Add(Requests(pod))
		}
	}
	sum = sum.Only(ReportedNames(offered, allocatable))
	return sum.List(), Percent(sum, allocatable)
}
