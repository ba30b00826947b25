// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/load"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/room"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// graph is a graph of the existing pools and nodes. Its edges are which pool selects which
// node, and which node has settings of which pool; they determine the plan for each node. The
// graph is updated event by event. It has no lock.
type graph struct {
	pools map[string]*pool
	nodes map[string]*node
	loads *load.Nodes
	// owners indexes the ownership records of the nodes by pool.
	owners ownerIndex
	// formerKeys are keys that pools managed in the past.
	formerKeys formerKeys
	// tainted is the time at which a node got its latest NoExecute taint of a pool, by node.
	// Entries older than the maximum eviction duration are dropped when they are read.
	tainted map[string]time.Time
	// journal records the joins and leaves of nodes.
	journal *Journal

	// roomChanges counts the changes after which the headroom of a pool may differ.
	roomChanges uint64
	// dirty collects the nodes and pools that must be reconciled.
	dirty Dirty
}

func newGraph() graph {
	return graph{
		pools: map[string]*pool{}, nodes: map[string]*node{}, loads: load.NewNodes(), owners: ownerIndex{},
		tainted: map[string]time.Time{}, journal: newJournal(), dirty: newDirty(),
	}
}

// putPool adds or updates a pool.
func (g *graph) putPool(object *tidekeeperv1.NodePool) {
	name := object.Name
	g.dirty.Pools.Insert(name)
	p, known := g.pools[name]
	if known && p.object.UID != object.UID {
		// The pool was deleted and created again, and the watch did not report the deletion.
		g.dropPool(name)
		known = false
	}
	if !known {
		p = newPool()
		g.pools[name] = p
	}
	old := p.object
	p.object = object
	if old == nil || old.Generation != object.Generation {
		g.roomChanges++ // The headroom is evaluated for a single generation.
	}
	if old == nil || old.Generation != object.Generation || old.DeletionTimestamp.IsZero() != object.DeletionTimestamp.IsZero() {
		g.dirty.Edited.Insert(name)
	}
	p.sums.room.SetTaints(plan.Taints(object), g.roomsOf(p))
	if old != nil {
		g.addFormerKeys(old, object)
	}

	affected := sets.New[string]()
	if old == nil || !equality.Semantic.DeepEqual(old.Spec.Selector, object.Spec.Selector) {
		affected = affected.Union(p.members)
		p.selector, p.invalid = plan.Selector(object)
		for _, n := range g.nodes {
			g.updateMembership(n)
		}
	}
	if old == nil || p.ahead.unplanned || plansDiffer(old, object) {
		p.ahead.unplanned = false
		affected = affected.Union(p.members).Union(g.owners.nodes(name))
	}
	for node := range affected {
		g.planNode(g.nodes[node])
	}
}

// plansDiffer reports whether the plan for a node may differ between two versions of a pool.
func plansDiffer(a, b *tidekeeperv1.NodePool) bool {
	return a.Generation != b.Generation ||
		a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		plan.IsActive(a) != plan.IsActive(b) ||
		!equality.Semantic.DeepEqual(a.Status.Managed, b.Status.Managed)
}

// dropPool removes a pool.
func (g *graph) dropPool(name string) {
	p, known := g.pools[name]
	if !known {
		return
	}
	delete(g.pools, name)
	g.journal.forget(name)
	g.dirty.Pools.Insert(name)
	for key := range setting.Managed(p.object) {
		g.formerKeys.add(name, key)
	}
	affected := p.members.Union(g.owners.nodes(name))
	for member := range p.members {
		n := g.nodes[member]
		n.pools = slices.DeleteFunc(n.pools, func(other *pool) bool { return other == p })
		p.sums.remove(&n.figures)
	}
	for node := range affected {
		g.planNode(g.nodes[node])
	}
}

// addFormerKeys remembers the keys that a pool ceases to manage.
func (g *graph) addFormerKeys(before, now *tidekeeperv1.NodePool) {
	for key := range setting.Managed(before) {
		if !setting.Manages(now, key) {
			g.formerKeys.add(now.Name, key)
		}
	}
}

// putNode adds or updates a node.
func (g *graph) putNode(object *corev1.Node) {
	n, known := g.nodes[object.Name]
	if !known {
		n = &node{name: object.Name}
		n.load = g.loads.Of(object.Name)
		n.room.Name = object.Name
		g.nodes[object.Name] = n
	}
	changed := differenceOf(n.object, object)
	n.object, n.room.Object = object, object
	ready := nodes.IsReady(object)
	readyChanged := ready != n.ready
	if readyChanged {
		for _, p := range n.pools {
			p.sums.setReady(ready)
			g.dirty.Pools.Insert(p.object.Name)
		}
		n.ready = ready
	}
	if changed.amounts {
		g.offer(n, object)
	}
	if readyChanged || changed.amounts || changed.taints || changed.unschedulable || changed.going {
		g.recount(n)
	}
	if changed.labels {
		g.roomChanges++ // Pods choose nodes by labels, and zones are labels.
		g.updateMembership(n)
	}
	if changed.record {
		// A record that cannot be parsed counts as empty; the plan rewrites it.
		record, err := ownership.Parse(object.Annotations[tidekeeperv1.OwnershipAnnotation])
		g.setRecord(n, record)
		n.unreadable = err != nil
	}
	if changed.labels || changed.taints || changed.annotations {
		g.planNode(n)
	}
}

// dropNode removes a node.
func (g *graph) dropNode(name string) {
	n, known := g.nodes[name]
	if !known {
		return
	}
	g.roomChanges++
	g.setRecord(n, nil)
	g.setPools(n, nil)
	n.object = nil
	g.planNode(n)
	g.offer(n, nil)
	delete(g.nodes, name)
	g.loads.Drop(name)
}

// offer updates the resources that a node offers, including the sums of its pools. A nil object
// offers no resources.
func (g *graph) offer(n *node, object *corev1.Node) {
	var capacity, allocatable []resources.Amount
	if object != nil {
		capacity, allocatable = resources.Offered(object)
	}
	for _, p := range n.pools {
		p.sums.offer(&n.figures, capacity, allocatable)
		g.dirty.Utilization.Insert(p.object.Name)
	}
	before, now := resources.NamesIn(n.capacity, n.allocatable), resources.NamesIn(capacity, allocatable)
	n.capacity, n.allocatable = capacity, allocatable
	for other := range g.loads.Offer(before, now) {
		if changed := g.nodes[other]; changed != nil {
			g.utilizationChanged(changed)
		}
	}
}

// loadsChanged updates the room of the nodes whose load has changed; the name "" is ignored. A
// pod may become known before its node.
func (g *graph) loadsChanged(names ...string) {
	for _, name := range names {
		if n := g.nodes[name]; n != nil {
			g.recount(n)
		} else if name != "" {
			g.roomChanges++
		}
	}
}

// recount updates the room of a node, including the sums of its pools.
func (g *graph) recount(n *node) {
	g.roomChanges++
	before := n.room.Recount(n.allocatable, n.load.Requested())
	for _, p := range n.pools {
		p.sums.room.Update(&n.room, before)
	}
	g.utilizationChanged(n)
}

// utilizationChanged queues the pools of a node whose utilization has changed.
func (g *graph) utilizationChanged(n *node) {
	for _, p := range n.pools {
		g.dirty.Utilization.Insert(p.object.Name)
	}
}

// roomsOf yields the room of each member of a pool.
func (g *graph) roomsOf(p *pool) iter.Seq[*room.Node] {
	return func(yield func(*room.Node) bool) {
		for name := range p.members {
			if !yield(&g.nodes[name].room) {
				return
			}
		}
	}
}

// setRecord replaces the ownership record of a node.
func (g *graph) setRecord(n *node, record ownership.Record) {
	g.owners.remove(n.name, n.record)
	g.owners.add(n.name, record)
	for _, names := range []ownership.Record{n.record, record} {
		for name := range names {
			// A forged record may name thousands of pools that do not exist.
			if g.pools[name] != nil {
				g.dirty.Pools.Insert(name)
			}
		}
	}
	n.record = record
}

// updateMembership makes a node a member of the pools that select it now, and of no other pool.
func (g *graph) updateMembership(n *node) {
	g.setPools(n, slices.Collect(g.selecting(n.object)))
}

// setPools makes a node a member of these pools, and of no other pool.
func (g *graph) setPools(n *node, now []*pool) {
	for _, p := range n.pools {
		if !slices.Contains(now, p) {
			p.leave(n)
			g.moved(p, n, g.journal.leave)
		}
	}
	for _, p := range now {
		if !slices.Contains(n.pools, p) {
			p.members.Insert(n.name)
			p.sums.add(&n.figures)
			g.moved(p, n, g.journal.join)
		}
	}
	n.pools = now
}

// moved queues a pool that a node has joined or left, and records the move.
func (g *graph) moved(p *pool, n *node, record func(pool, node string)) {
	g.dirty.Pools.Insert(p.object.Name)
	if p.object.DeletionTimestamp.IsZero() {
		record(p.object.Name, n.name)
	}
}

// selecting yields the pools that select a node.
func (g *graph) selecting(object *corev1.Node) iter.Seq[*pool] {
	return func(yield func(*pool) bool) {
		for _, p := range g.pools {
			if p.selector != nil && p.selector.Matches(labels.Set(object.Labels)) && !yield(p) {
				return
			}
		}
	}
}

// planNode plans a node again, and keeps the summary for queries. The node controller makes its
// own plan from the node as it reads it.
func (g *graph) planNode(n *node) {
	before := n.summary
	n.summary = plan.Summary{}
	delete(g.tainted, n.name)
	if n.object != nil {
		if since := plan.LatestTaint(n.evictingTaints()); !since.IsZero() {
			g.tainted[n.name] = since
		}
		nodePlan := plan.ForNode(n.object, g.poolsOn(n.object, n.record))
		n.summary = nodePlan.Summary()
		if n.summary.NeedsWrite {
			g.dirty.Nodes.Insert(n.name)
		}
	}
	for _, name := range n.named(&before, &n.summary) {
		if p := g.pools[name]; p != nil && p.planned(n.name, &before, &n.summary) {
			g.dirty.Pools.Insert(name)
		}
		if !slices.Contains(n.summary.Affected, name) {
			n.refused.Delete(name)
		}
	}
}

// poolsOn returns the pools that concern a node: pools that select the node, and pools in its
// record.
func (g *graph) poolsOn(object *corev1.Node, record ownership.Record) []plan.PoolOnNode {
	var pools []plan.PoolOnNode
	for p := range g.selecting(object) {
		pools = append(pools, plan.PoolOnNode{
			Pool: p.object, Member: p.object.DeletionTimestamp.IsZero(), MayEvict: p.turns.allowed.Has(object.Name),
			FormerlyManaged: g.formerKeys.forPool(p.object.Name),
		})
	}
	for name := range record {
		p, former := g.pools[name], g.formerKeys.forPool(name)
		switch {
		case p == nil && len(former) > 0:
			deleted := &tidekeeperv1.NodePool{}
			deleted.Name = name
			pools = append(pools, plan.PoolOnNode{Pool: deleted, FormerlyManaged: former})
		case p != nil && !slices.ContainsFunc(pools, func(on plan.PoolOnNode) bool { return on.Pool == p.object }):
			pools = append(pools, plan.PoolOnNode{Pool: p.object, FormerlyManaged: former})
		}
	}
	return pools
}

// nodesToClean returns the number of nodes that a pool waits for while it is being deleted:
// nodes whose record names the pool, and members whose record cannot be parsed, until it has
// been rewritten.
func (g *graph) nodesToClean(p *pool) (count int) {
	for name := range g.owners.nodes(p.object.Name) {
		if p.writes.awaits(name) {
			count++
		}
	}
	for name := range p.members {
		if g.nodes[name].unreadable && p.writes.awaits(name) {
			count++
		}
	}
	return count
}
