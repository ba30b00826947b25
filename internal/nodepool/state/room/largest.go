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

// largest tracks the nodes of a pool with the most free resources. For each resource, it holds a
// heap of the nodes that accept new pods and have some of the resource free. The cost of an event
// is therefore logarithmic in the number of nodes.
type largest map[corev1.ResourceName]*nodeHeap

// update moves a node to its new position in each heap after the node's free resources have
// changed. before lists the previous free amounts, and usable is true if the node accepts new pods.
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

// nodes returns, for each resource, the node with the largest free amount, in the order of the
// resources. It returns each node once, and at most [capacity.MaxLargestFits] nodes.
func (l largest) nodes() (list []*Node) {
	for _, name := range slices.SortedFunc(maps.Keys(l), resources.CompareNames) {
		if n := l[name].top(); len(list) < capacity.MaxLargestFits && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// nodeHeap is a heap of nodes, with the node with the largest free amount of a resource at the top.
// Ties are broken by the other resources in order, then by node name.
type nodeHeap struct {
	resource corev1.ResourceName
	nodes    []*Node
	index    map[*Node]int
}

// top returns the node with the largest free amount of the heap's resource. The heap must not be
// empty.
func (h *nodeHeap) top() *Node { return h.nodes[0] }

// put adds a node to the heap, or moves it to its new position.
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

// Less implements [heap.Interface]. Nodes with more free resources come first.
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
