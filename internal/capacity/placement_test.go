// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestPlacement checks that each pod is placed on the first node with room, and that the nodes are
// not modified.
func TestPlacement(t *testing.T) {
	small, large := &class{request: vector{1}}, &class{request: vector{3}}
	unknown := &class{request: vector{0}, unknown: "example.com/a"}
	for _, c := range []*class{small, large, unknown} {
		c.Shape = ShapeOf(&corev1.Pod{})
	}
	for _, tc := range []struct {
		name string
		free []int64 // amount of the resource that is free on each node
		away int     // index of a node that is not ready, or -1 for none
		gone int     // index of a lost node, or -1 for none
		pods []*class
		want []int // index of the node of each pod, or -1 if unplaced
	}{
		{"the first node takes all", []int64{4, 4}, -1, -1, []*class{large, small}, []int{0, 0}},
		{"the next node takes the rest", []int64{4, 4}, -1, -1, []*class{large, large, small}, []int{0, 1, 0}},
		{"a lost node takes none", []int64{4, 1}, -1, 0, []*class{small, small}, []int{1, -1}},
		{"a node that is not ready takes none", []int64{4, 1}, 0, -1, []*class{small, small}, []int{1, -1}},
		{"no node has the resource", []int64{4}, -1, -1, []*class{unknown, small}, []int{-1, 0}},
		{"there are no nodes", nil, -1, -1, []*class{small}, []int{-1}},
	} {
		var nodes []*node
		for i, free := range tc.free {
			nodes = append(nodes, &node{object: &corev1.Node{}, number: i, free: vector{free}, away: i == tc.away})
		}
		gone := sets.New[*node]()
		if tc.gone >= 0 {
			gone.Insert(nodes[tc.gone])
		}
		p := newPlacement(nodes)
		var pods []pod
		for i, c := range tc.pods {
			pods = append(pods, pod{object: &corev1.Pod{Spec: corev1.PodSpec{Priority: new(int32(i))}}, class: c})
		}
		for range 2 { // The first round of placements must not affect the second.
			got := make([]int, len(pods))
			for i := range got {
				got[i] = -1
			}
			p.placed = func(placed pod, n *node, _ vector) { got[*placed.object.Spec.Priority] = n.number }
			rest := p.place(pods, gone, nil)
			equal(t, tc.name, tc.want, got)
			placed := 0
			for _, number := range got {
				if number >= 0 {
					placed++
				}
			}
			if len(rest) != len(pods)-placed {
				t.Errorf("%s: %d pods are left over, and %d of %d are placed", tc.name, len(rest), placed, len(pods))
			}
		}
		for i, n := range nodes {
			if n.free[0] != tc.free[i] {
				t.Errorf("%s: node %d has %d free after it, want %d", tc.name, i, n.free[0], tc.free[i])
			}
		}
	}
}
