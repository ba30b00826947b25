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

// graph holds the pools and nodes, and the links between them. A pool is linked to the nodes that
// it selects, and to the nodes that have its settings. These links determine the plan for each
// node. The graph is updated with every event. It has no lock of its own.
type graph struct {
	pools map[string]*pool
	nodes map[string]*node
	loads *load.Nodes
	// owners indexes the ownership annotations of all nodes by pool.
	owners ownerIndex
	// formerKeys holds the keys that pools managed in the past but no longer manage.
	formerKeys formerKeys
	// tainted maps each node to the time at which a pool last added a NoExecute taint to it, or
	// closed it to new pods for such a taint. Entries older than the maximum eviction duration are
	// dropped when they are read.
	tainted map[string]time.Time
	// journal records which nodes join and leave pools.
	journal *Journal

	// roomChanges counts the changes that may affect the headroom of any pool.
	roomChanges uint64
	// dirty collects the nodes and pools that must be reconciled because of the change in progress.
	dirty Dirty
	// backlog has the nodes that wait for new plans.
	backlog backlog
}

func newGraph() graph {
	return graph{
		pools: map[string]*pool{}, nodes: map[string]*node{}, loads: load.NewNodes(), owners: ownerIndex{},
		tainted: map[string]time.Time{}, journal: newJournal(), dirty: newDirty(), backlog: newBacklog(),
	}
}

// putPool adds or updates a pool, and computes new plans for the nodes that the change may affect, or
// for the first of them. The plans need not queue the nodes in `queued`.
func (g *graph) putPool(object *tidekeeperv1.NodePool, queued sets.Set[string]) {
	name := object.Name
	g.dirty.Pools.Insert(name)
	p, known := g.pools[name]
	if known && p.object.UID != object.UID {
		// The pool was deleted and created again, but the watch missed the deletion.
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
		g.roomChanges++         // The result of a headroom evaluation is valid for a single generation.
		p.turns.emptied.Clear() // Nodes were emptied for the taints of a single generation, too.
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
	g.backlog.add(name, affected, queued)
	planMore(g)
}

// plansDiffer reports whether two versions of a pool may lead to different node plans.
func plansDiffer(a, b *tidekeeperv1.NodePool) bool {
	return a.Generation != b.Generation ||
		a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		plan.IsActive(a) != plan.IsActive(b) ||
		!equality.Semantic.DeepEqual(a.Status.Managed, b.Status.Managed)
}

// dropPool removes a pool, and computes new plans for the nodes that it selected or that have its
// settings.
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
	affected := p.members.Union(g.owners.nodes(name)).Union(g.backlog.of(name))
	g.backlog.drop(name)
	for member := range p.members {
		n := g.nodes[member]
		n.pools = slices.DeleteFunc(n.pools, func(other *pool) bool { return other == p })
		p.sums.remove(&n.figures)
	}
	for node := range affected {
		g.planNode(g.nodes[node])
	}
}

// addFormerKeys remembers the keys that the pool manages in version `before` but not in version
// `now`.
func (g *graph) addFormerKeys(before, now *tidekeeperv1.NodePool) {
	for key := range setting.Managed(before) {
		if !setting.Manages(now, key) {
			g.formerKeys.add(now.Name, key)
		}
	}
}

// putNode adds or updates a node. It recomputes only the state that depends on the changed parts of
// the node.
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
		g.roomChanges++ // Labels affect where pods can run, and include the node's zone.
		g.updateMembership(n)
	}
	if changed.record {
		g.setRecord(n, ownership.Read(object.Annotations[tidekeeperv1.OwnershipAnnotation]))
	}
	if changed.labels || changed.taints || changed.annotations {
		g.planNode(n)
	}
}

// dropNode removes a node from its pools, from the index of owners and from the sums.
func (g *graph) dropNode(name string) {
	n, known := g.nodes[name]
	if !known {
		return
	}
	g.roomChanges++
	g.setRecord(n, ownership.Annotation{})
	g.setPools(n, nil)
	n.object = nil
	g.planNode(n)
	g.offer(n, nil)
	delete(g.nodes, name)
	g.loads.Drop(name)
}

// offer sets the capacity and allocatable resources of a node, and updates the sums of the node's
// pools. If `object` is nil, the node has no resources.
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

// loadsChanged updates the free resources of the named nodes after their pods have changed. Empty
// names are ignored. A node may be unknown, because pods may become known before their node.
func (g *graph) loadsChanged(names ...string) {
	for _, name := range names {
		if n := g.nodes[name]; n != nil {
			g.recount(n)
			g.emptyingChanged(n)
		} else if name != "" {
			g.roomChanges++
		}
	}
}

// recount updates the free resources of a node, and the sums of the node's pools.
func (g *graph) recount(n *node) {
	g.roomChanges++
	before := n.room.Recount(n.allocatable, n.load.Requested())
	for _, p := range n.pools {
		p.sums.room.Update(&n.room, before)
	}
	g.utilizationChanged(n)
}

// utilizationChanged queues the node's pools because the node's utilization has changed.
func (g *graph) utilizationChanged(n *node) {
	for _, p := range n.pools {
		g.dirty.Utilization.Insert(p.object.Name)
	}
}

// roomsOf yields the free resources of each member node of a pool.
func (g *graph) roomsOf(p *pool) iter.Seq[*room.Node] {
	return func(yield func(*room.Node) bool) {
		for name := range p.members {
			if !yield(&g.nodes[name].room) {
				return
			}
		}
	}
}

// setRecord replaces the ownership record of a node, and queues the pools named in the old or new
// record. An ownership annotation that cannot be parsed counts as empty. The next write of the node
// replaces it.
func (g *graph) setRecord(n *node, recorded ownership.Annotation) {
	g.owners.remove(n.name, n.recorded.Record)
	g.owners.add(n.name, recorded.Record)
	for _, names := range []ownership.Record{n.recorded.Record, recorded.Record} {
		for name := range names {
			// A forged annotation may name thousands of pools that do not exist; they must not be
			// queued.
			if g.pools[name] != nil {
				g.dirty.Pools.Insert(name)
			}
		}
	}
	n.recorded = recorded
}

// updateMembership makes a node a member of exactly the pools that currently select it.
func (g *graph) updateMembership(n *node) {
	g.setPools(n, slices.Collect(g.selecting(n.object)))
}

// setPools makes a node a member of exactly the given pools.
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

// moved queues a pool that a node has joined or left. Unless the pool is being deleted, moved also
// calls `record` to add the join or leave to the journal.
func (g *graph) moved(p *pool, n *node, record func(pool, node string)) {
	g.dirty.Pools.Insert(p.object.Name)
	if p.object.DeletionTimestamp.IsZero() {
		record(p.object.Name, n.name)
	}
}

// selecting yields the pools that select the given node.
func (g *graph) selecting(object *corev1.Node) iter.Seq[*pool] {
	return func(yield func(*pool) bool) {
		for _, p := range g.pools {
			if p.selector != nil && p.selector.Matches(labels.Set(object.Labels)) && !yield(p) {
				return
			}
		}
	}
}

// planNode computes a new plan for a node, and stores the plan's summary for queries. Before a
// write, the node controller computes another plan from the latest version of the node.
func (g *graph) planNode(n *node) {
	before := n.summary
	n.summary = plan.Summary{}
	delete(g.tainted, n.name)
	if n.object != nil {
		nodePlan := plan.ForRecorded(n.object, n.recorded, g.poolsOn(n.object, n.recorded.Record), nil)
		n.summary = nodePlan.Summary()
		if since := n.sinceLastEviction(func([]corev1.Taint) bool { return true }); !since.IsZero() {
			g.tainted[n.name] = since
		}
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
	g.dirty.Edited.Insert(g.backlog.planned(n.name)...)
	g.emptyingPlanned(n, before.Emptying)
}

// poolsOn returns the pools that affect a node: the pools that select it, and the pools named in
// its ownership record.
func (g *graph) poolsOn(object *corev1.Node, record ownership.Record) []plan.PoolOnNode {
	var pools []plan.PoolOnNode
	for p := range g.selecting(object) {
		on := plan.PoolOnNode{
			Pool: p.object, Member: p.object.DeletionTimestamp.IsZero(), FormerlyManaged: g.formerKeys.forPool(p.object.Name),
			Emptied: p.turns.emptied.Has(object.Name),
		}
		on.TurnAt, on.MayEvict = p.turns.allowed[object.Name]
		pools = append(pools, on)
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

// nodesToClean returns the number of nodes that the deletion of a pool has to wait for. These are
// the nodes whose ownership annotation names the pool, and the members whose unreadable annotation
// has not been rewritten yet.
func (g *graph) nodesToClean(p *pool) (count int) {
	for name := range g.owners.nodes(p.object.Name) {
		if p.writes.awaits(name) {
			count++
		}
	}
	for name := range p.members {
		if g.nodes[name].recorded.Err != nil && p.writes.awaits(name) {
			count++
		}
	}
	return count
}
