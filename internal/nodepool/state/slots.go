// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
)

// slots finds the nodes of a pool with the most room. There is a heap for each resource, of
// the nodes that new pods can use and that have some of it left, so that an event costs the
// logarithm of the number of nodes.
type slots map[corev1.ResourceName]*slotHeap

// update brings a node up to date whose room has changed: where it is a member of a heap, and
// where it should be.
func (s *slots) update(n *nodeState, before []resources.Amount, usable bool) {
	for _, a := range before {
		if h := (*s)[a.Resource]; h != nil && (!usable || resources.ValueOf(n.room.left, a.Resource) == 0) {
			h.remove(n)
			if len(h.nodes) == 0 {
				delete(*s, a.Resource)
			}
		}
	}
	if !usable {
		return
	}
	for _, a := range n.room.left {
		if a.Value == 0 || resources.IsSecondary(a.Resource) {
			continue
		}
		if *s == nil {
			*s = slots{}
		}
		if (*s)[a.Resource] == nil {
			(*s)[a.Resource] = &slotHeap{resource: a.Resource, index: map[*nodeState]int{}}
		}
		(*s)[a.Resource].put(n)
	}
}

// nodes returns the nodes with the most of each resource, in the order of the resources, each
// node once, at most [capacity.MaxSlots].
func (s slots) nodes() (list []*nodeState) {
	for _, name := range slices.SortedFunc(maps.Keys(s), resources.CompareNames) {
		if n := s[name].top(); len(list) < capacity.MaxSlots && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// slotHeap has the node with the most of one resource left at its top. Of nodes with as much
// of it, the one with more of the next resource comes first, then the first by name.
type slotHeap struct {
	resource corev1.ResourceName
	nodes    []*nodeState
	index    map[*nodeState]int
}

// top returns the node with the most. There is one.
func (h *slotHeap) top() *nodeState { return h.nodes[0] }

// put adds the node, or moves it to where it belongs now.
func (h *slotHeap) put(n *nodeState) {
	if i, known := h.index[n]; known {
		heap.Fix(h, i)
	} else {
		heap.Push(h, n)
	}
}

func (h *slotHeap) remove(n *nodeState) {
	if i, known := h.index[n]; known {
		heap.Remove(h, i)
	}
}

// Len implements [heap.Interface].
func (h *slotHeap) Len() int { return len(h.nodes) }

// Less implements [heap.Interface]: more room is less.
func (h *slotHeap) Less(i, j int) bool {
	a, b := h.nodes[i], h.nodes[j]
	return cmp.Or(
		cmp.Compare(resources.ValueOf(b.room.left, h.resource), resources.ValueOf(a.room.left, h.resource)),
		capacity.CompareRoom(b.room.left, a.room.left),
		cmp.Compare(a.name, b.name)) < 0
}

// Swap implements [heap.Interface].
func (h *slotHeap) Swap(i, j int) {
	h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i]
	h.index[h.nodes[i]], h.index[h.nodes[j]] = i, j
}

// Push implements [heap.Interface].
func (h *slotHeap) Push(x any) {
	n := x.(*nodeState) //nolint:forcetypeassert // Only put pushes.
	h.index[n] = len(h.nodes)
	h.nodes = append(h.nodes, n)
}

// Pop implements [heap.Interface].
func (h *slotHeap) Pop() any {
	last := len(h.nodes) - 1
	n := h.nodes[last]
	h.nodes[last] = nil
	h.nodes = h.nodes[:last]
	delete(h.index, n)
	return n
}
