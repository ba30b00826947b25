// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// MaxLargestFits is the maximum number of entries in Room.LargestFits.
const MaxLargestFits = 4

// usableNodes holds the nodes that accept new pods, and the resources to report for them.
type usableNodes struct {
	axes    *axes
	nodes   []*node
	offered []corev1.ResourceName
}

// largestFits returns the free resources of the nodes with the most free CPU, the most free memory,
// and the most of each free extended resource. It returns each node once, and at most
// [MaxLargestFits] nodes. Ties are broken by the other resources in order, then by node name.
func (u *usableNodes) largestFits() []tidekeeperv1.LargestFit {
	shown := []tidekeeperv1.LargestFit{}
	for _, name := range u.offered {
		if len(u.nodes) == 0 || len(shown) == MaxLargestFits || resources.IsSecondary(name) {
			continue
		}
		i := u.axes.index[name]
		best := slices.MaxFunc(u.nodes, func(a, b *node) int {
			return cmp.Or(cmp.Compare(a.free[i], b.free[i]), slices.CompareFunc(a.free, b.free, compareLeft), cmp.Compare(b.number, a.number))
		})
		if best.free[i] <= 0 || slices.ContainsFunc(shown, func(s tidekeeperv1.LargestFit) bool { return s.Node == best.object.Name }) {
			continue
		}
		shown = append(shown, tidekeeperv1.LargestFit{Node: best.object.Name, Resources: u.axes.list(best.free, u.offered)})
	}
	return shown
}

// compareLeft compares the free amounts of a resource on two nodes. Negative amounts, which
// overcommitted nodes have, count as 0.
func compareLeft(a, b int64) int { return cmp.Compare(max(0, a), max(0, b)) }

// CompareRoom compares the free resources of two nodes: CPU first, then memory, then other
// resources by name. Both lists must be sorted by name and must not contain negative amounts.
func CompareRoom(a, b []resources.Amount) int {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if c := cmp.Compare(resources.ValueOf(a, name), resources.ValueOf(b, name)); c != 0 {
			return c
		}
	}
	for len(a) > 0 || len(b) > 0 {
		var left, right int64
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Resource < b[0].Resource:
			left, a = a[0].Value, a[1:]
		case len(a) == 0 || b[0].Resource < a[0].Resource:
			right, b = b[0].Value, b[1:]
		default:
			left, right, a, b = a[0].Value, b[0].Value, a[1:], b[1:]
		}
		if c := cmp.Compare(left, right); c != 0 {
			return c
		}
	}
	return 0
}

// emptyNode returns the node that would have the most free resources if only DaemonSet pods ran on
// it, together with these resources.
func (u *usableNodes) emptyNode() (s tidekeeperv1.LargestFit) {
	var most vector
	for _, n := range u.nodes {
		left := n.empty()
		if most == nil || slices.Compare(left, most) > 0 {
			most, s.Node = left, n.object.Name
		}
	}
	if most != nil {
		s.Resources = u.axes.list(most, u.offered)
	}
	return s
}
