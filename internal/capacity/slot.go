// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxSlots is the maximum number of slots of a [Level].
const maxSlots = 4

// Slot is what is free on one node: the largest pod that would start there now. It is a whole
// vector, because a pod needs all of its resources on the same node: the most CPU and the most
// memory may be free on different ones.
type Slot struct {
	Node      string              `json:"node"`
	Resources corev1.ResourceList `json:"resources"`
}

// slots returns what is free on the nodes with the most free CPU, memory and each extended
// resource, each node once, at most [maxSlots]. Of nodes with as much of that, the one with
// more of the next resource counts, then the first by name.
func (c *Cluster) slots(open []*node, offered []corev1.ResourceName) []Slot {
	shown := []Slot{}
	for _, name := range offered {
		if len(open) == 0 || len(shown) == maxSlots || name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage {
			continue
		}
		i := c.index[name]
		best := slices.MaxFunc(open, func(a, b *node) int {
			return cmp.Or(cmp.Compare(a.free[i], b.free[i]), slices.Compare(a.free, b.free), cmp.Compare(b.number, a.number))
		})
		if best.free[i] <= 0 || slices.ContainsFunc(shown, func(s Slot) bool { return s.Node == best.object.Name }) {
			continue
		}
		shown = append(shown, Slot{best.object.Name, c.list(best.free, offered)})
	}
	return shown
}

// emptyNode returns what is left on the node that would have most, if it had pods of
// DaemonSets only.
func (c *Cluster) emptyNode(open []*node, offered []corev1.ResourceName) (s Slot) {
	var most vector
	for _, n := range open {
		left := n.empty()
		if most == nil || slices.Compare(left, most) > 0 {
			most, s.Node = left, n.object.Name
		}
	}
	if most != nil {
		s.Resources = c.list(most, offered)
	}
	return s
}
