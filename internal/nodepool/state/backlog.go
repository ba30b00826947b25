// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import "k8s.io/apimachinery/pkg/util/sets"

// plannedAtOnce is the number of nodes that a change of a pool plans while the model is locked. The
// plans of 5,000 nodes would lock it for a tenth of a second, in which no node could be written to.
const plannedAtOnce = 64

// backlog has the nodes that wait for new plans because of changes of pools.
type backlog struct {
	// waiting maps each pool that has such nodes to the names of the nodes. The value is true for a
	// node that has been queued already, and that its new plan need not queue again.
	waiting map[string]map[string]bool
	// atOnce is the maximum number of nodes that are planned while the model is locked.
	atOnce int
}

func newBacklog() backlog {
	return backlog{waiting: map[string]map[string]bool{}, atOnce: plannedAtOnce}
}

// add adds nodes that wait for new plans because of a change of the pool. queued has the nodes that
// have been queued already.
func (b *backlog) add(pool string, nodes, queued sets.Set[string]) {
	if len(nodes) > 0 && b.waiting[pool] == nil {
		b.waiting[pool] = map[string]bool{}
	}
	for node := range nodes {
		b.waiting[pool][node] = queued.Has(node)
	}
}

// next returns a node that waits for a new plan, and whether it has been queued already. It returns ""
// if no node waits.
func (b *backlog) next() (node string, queued bool) {
	for _, nodes := range b.waiting {
		for node, queued := range nodes {
			return node, queued
		}
	}
	return "", false
}

// has reports whether the node waits for a new plan.
func (b *backlog) has(node string) bool {
	for _, nodes := range b.waiting {
		if _, waits := nodes[node]; waits {
			return true
		}
	}
	return false
}

// planned removes a node, which has a new plan now. It returns the pools of which it was the last.
func (b *backlog) planned(node string) (done []string) {
	for pool, nodes := range b.waiting {
		if _, waited := nodes[node]; waited {
			if delete(nodes, node); len(nodes) == 0 {
				delete(b.waiting, pool)
				done = append(done, pool)
			}
		}
	}
	return done
}

// queue notes that all waiting nodes of a pool have been queued, and returns them.
func (b *backlog) queue(pool string) sets.Set[string] {
	nodes := b.of(pool)
	for node := range nodes {
		b.waiting[pool][node] = true
	}
	return nodes
}

// of returns the nodes that wait for new plans because of a change of the pool.
func (b *backlog) of(pool string) sets.Set[string] { return sets.KeySet(b.waiting[pool]) }

// waits reports whether nodes wait for new plans because of a change of the pool.
func (b *backlog) waits(pool string) bool { return len(b.waiting[pool]) > 0 }

// drop forgets a pool.
func (b *backlog) drop(pool string) { delete(b.waiting, pool) }

// empty reports whether no node waits for a new plan.
func (b *backlog) empty() bool { return len(b.waiting) == 0 }

// Planning has the model's method for nodes that wait for new plans because of a change of a pool. The
// nodes of a large pool are not planned at once, because the model is locked meanwhile.
type Planning struct{ *guarded }

// More computes the next of the plans that are due. It must be called again as long as Unplanned is
// set in the result.
func (p Planning) More() Dirty { return p.change(planMore) }

func planMore(g *graph) {
	for range g.backlog.atOnce {
		node, queued := g.backlog.next()
		if node == "" {
			return
		}
		already := g.dirty.Nodes.Has(node)
		g.planNode(g.nodes[node])
		if queued && !already {
			g.dirty.Nodes.Delete(node)
		}
	}
	g.dirty.Unplanned = !g.backlog.empty()
}

// upToDate returns a node, or nil if it is unknown. If the node waits for a new plan, it is planned
// first, so that no permission is given for a taint that is no longer due.
func upToDate(g *graph, name string) *node {
	n := g.nodes[name]
	if n != nil && g.backlog.has(name) {
		g.planNode(n)
	}
	return n
}
