// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// placement places pods on nodes, each on the first node by name that takes the pod (first-fit). The nodes
// are not changed.
type placement struct {
	nodes []*node // by number
	// open caches the open nodes of each class.
	open map[*class]*openNodes
	// room has the free resources that remain on each node after placements, by node index.
	room []vector
	// placed, for tests, is called with each pod that is placed.
	placed func(p pod, n *node, left vector)
}

// openNodes has the nodes that have room for a pod of a class before any placement: all such nodes among the
// first scanned nodes.
type openNodes struct {
	numbers []int
	scanned int
}

func newPlacement(list []*node) *placement {
	return &placement{nodes: list, open: map[*class]*openNodes{}, room: make([]vector, len(list))}
}

// place finds a node for each pod in turn, except for the nodes that are gone, and returns the pods that
// remain without a node.
func (p *placement) place(homeless []pod, gone sets.Set[*node]) (rest []pod) {
	var used []int
	// Room only shrinks, so the search for a class continues from the last node.
	next := map[*class]int{}
	for _, h := range homeless {
		n, k := p.firstFit(h.class, next[h.class], gone)
		next[h.class] = k
		if n == nil {
			rest = append(rest, h)
			continue
		}
		if p.room[n.number] == nil {
			p.room[n.number] = slices.Clone(n.free)
			used = append(used, n.number)
		}
		p.room[n.number].subtract(h.class.request)
		if p.placed != nil {
			p.placed(h, n, p.room[n.number])
		}
	}
	for _, number := range used {
		p.room[number] = nil
	}
	return rest
}

// firstFit returns the first node, from the k-th open node of the class on, that takes a pod of the class and
// is not gone, and the index to continue from; nil if there is none.
func (p *placement) firstFit(of *class, k int, gone sets.Set[*node]) (*node, int) {
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
		if room := p.room[n.number]; !gone.Has(n) && (room == nil || room.covers(of.request)) {
			return n, k
		}
	}
}

// openNode returns the k-th node that has room for a pod of the class before any placement, nil if there are
// fewer. It scans no further than necessary: most pods fit on one of the first nodes.
func (p *placement) openNode(of *class, open *openNodes, k int) *node {
	for len(open.numbers) <= k {
		if open.scanned == len(p.nodes) || of.unknown != "" {
			return nil
		}
		n := p.nodes[open.scanned]
		open.scanned++
		// Check resources first, as that is cheaper.
		if !n.away && n.free.covers(of.request) && len(of.refusals(n.object)) == 0 {
			open.numbers = append(open.numbers, n.number)
		}
	}
	return p.nodes[open.numbers[k]]
}
