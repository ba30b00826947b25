// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// largest finds the nodes of a pool with the most room. For each resource it has a heap of the
// nodes that new pods can use and that have some of the resource free, so that the cost of an
// event is logarithmic in the number of nodes.
type largest map[corev1.ResourceName]*nodeHeap

// update moves a node to its place in each heap after its room has changed. before are the
// amounts that were free until then.
func (l *largest) update(n *Node, before []resources.Amount, usable bool) {
	for _, a := range before {
		if h := (*l)[a.Resource]; h != nil && (!usable || resources.ValueOf(n.left, a.Resource) == 0) {
			h.remove(n)
			if len(h.nodes) == 0 {
				delete(*l, a.Resource)
			}
		}
	}
	if !usable {
		return
	}
	for _, a := range n.left {
		if a.Value == 0 || resources.IsSecondary(a.Resource) {
			continue
		}
		if *l == nil {
			*l = largest{}
		}
		if (*l)[a.Resource] == nil {
			(*l)[a.Resource] = &nodeHeap{resource: a.Resource, index: map[*Node]int{}}
		}
		(*l)[a.Resource].put(n)
	}
}

// nodes returns the nodes with the most of each resource, sorted by resource, without
// duplicates, at most [capacity.MaxLargestFits].
func (l largest) nodes() (list []*Node) {
	for _, name := range slices.SortedFunc(maps.Keys(l), resources.CompareNames) {
		if n := l[name].top(); len(list) < capacity.MaxLargestFits && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// nodeHeap is a heap with the node that has the most of a resource free at its top. Among equal
// nodes, the node with more of the next resource comes first, then the first by name.
type nodeHeap struct {
	resource corev1.ResourceName
	nodes    []*Node
	index    map[*Node]int
}

// top returns the node with the most of the resource. A heap is never empty.
func (h *nodeHeap) top() *Node { return h.nodes[0] }

// put adds the node, or moves it to its place.
func (h *nodeHeap) put(n *Node) {
	if i, known := h.index[n]; known {
		heap.Fix(h, i)
	} else {
		heap.Push(h, n)
	}
}

func (h *nodeHeap) remove(n *Node) {
	if i, known := h.index[n]; known {
		heap.Remove(h, i)
	}
}

// Len implements [heap.Interface].
func (h *nodeHeap) Len() int { return len(h.nodes) }

// Less implements [heap.Interface]: more room is less.
func (h *nodeHeap) Less(i, j int) bool {
	a, b := h.nodes[i], h.nodes[j]
	return cmp.Or(
		cmp.Compare(resources.ValueOf(b.left, h.resource), resources.ValueOf(a.left, h.resource)),
		capacity.CompareRoom(b.left, a.left),
		cmp.Compare(a.Name, b.Name)) < 0
}

// Swap implements [heap.Interface].
func (h *nodeHeap) Swap(i, j int) {
	h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i]
	h.index[h.nodes[i]], h.index[h.nodes[j]] = i, j
}

// Push implements [heap.Interface].
func (h *nodeHeap) Push(x any) {
	n := x.(*Node) //nolint:forcetypeassert // Only put pushes.
	h.index[n] = len(h.nodes)
	h.nodes = append(h.nodes, n)
}

// Pop implements [heap.Interface].
func (h *nodeHeap) Pop() any {
	last := len(h.nodes) - 1
	n := h.nodes[last]
	h.nodes[last] = nil
	h.nodes = h.nodes[:last]
	delete(h.index, n)
	return n
}
