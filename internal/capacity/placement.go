// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// placement places pods by first-fit: each pod on the first node, by name, that accepts it. The
// nodes are not modified.
type placement struct {
	nodes []*node // indexed by node.number
	// open caches, for each class, the nodes that had room for a pod of the class before any
	// placement, among the nodes scanned so far.
	open map[*class]*openNodes
	// room holds the resources that remain free after placements, indexed by node number. It is nil
	// for nodes without placements.
	room []vector
	// placed is called after each placement of a pod, unless it is nil. left holds the resources of
	// the pod's new node that remain free.
	placed func(p pod, n *node, left vector)
}

// openNodes caches the nodes that had room for a pod of a class before any placement. Nodes are
// scanned in order and on demand. numbers lists the open nodes among the nodes scanned so far.
type openNodes struct {
	numbers []int
	scanned int
}

func newPlacement(list []*node) *placement {
	return &placement{nodes: list, open: map[*class]*openNodes{}, room: make([]vector, len(list))}
}

// place places each pod in turn on a node that is not in `gone`, and returns the pods that fit on
// no node. between evaluates the constraints between pods; it is nil if there are none.
func (p *placement) place(homeless []pod, gone sets.Set[*node], between *admission) (rest []pod) {
	var used []int
	// Placements only reduce the free resources, so the search for the next pod of a class
	// continues at the node where the last search ended. For a pod that has constraints on other
	// pods, the search starts again at the first node, because a placement can make such a
	// constraint admit a node that it did not admit before.
	next := map[*class]int{}
	for _, h := range homeless {
		n, k := p.firstFit(h.class, next[h.class], func(n *node) bool { return !gone.Has(n) && between.admits(h, n) })
		if !between.constrains(h) {
			next[h.class] = k
		}
		if n == nil {
			rest = append(rest, h)
			continue
		}
		if p.room[n.number] == nil {
			p.room[n.number] = slices.Clone(n.free)
			used = append(used, n.number)
		}
		p.room[n.number].subtract(h.class.request)
		between.place(h, n)
		if p.placed != nil {
			p.placed(h, n, p.room[n.number])
		}
	}
	for _, number := range used {
		p.room[number] = nil
	}
	return rest
}

// firstFit returns the first admitted node that accepts a pod of the class, or nil if there is
// none. The search starts at the class's k-th open node. firstFit also returns the index of the
// open node at which to continue the search for the next pod of the class.
func (p *placement) firstFit(of *class, k int, admitted func(*node) bool) (*node, int) {
	open := p.open[of]
	if open == nil {
		open = &openNodes{}
		p.open[of] = open
	}
	for ; ; k++ {
		n := p.openNode(of, open, k)
		if n == nil {
			return nil, k
		}
		if room := p.room[n.number]; (room == nil || room.covers(of.request)) && admitted(n) {
			return n, k
		}
	}
}

// openNode returns the k-th node that had room for a pod of the class before any placement, or nil
// if there are fewer. It scans only as many nodes as necessary, because most pods fit on the first
// few nodes.
func (p *placement) openNode(of *class, open *openNodes, k int) *node {
	for len(open.numbers) <= k {
		if open.scanned == len(p.nodes) || of.unknown != "" {
			return nil
		}
		n := p.nodes[open.scanned]
		open.scanned++
		// The free resources are checked before taints and labels, because that check is cheaper.
		if !n.away && n.free.covers(of.request) && len(of.refusals(n.object)) == 0 {
			open.numbers = append(open.numbers, n.number)
		}
	}
	return p.nodes[open.numbers[k]]
}
