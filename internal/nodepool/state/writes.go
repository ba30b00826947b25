// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// AllowWrite reports whether a plan may be carried out on the node now. If so, it counts a write.
// Writes are throttled for nodes whose changes are repeatedly reverted. This happens if another
// client sets a key to another value, or if the labels of two pools repeatedly change which of the
// pools select the node. Validation of pools cannot exclude this. The pools of a throttled plan get
// an event about it.
func (c *Cluster) AllowWrite(name string, nodePlan *plan.NodePlan, now time.Time) (allowed bool, dirty Dirty) {
	dirty = c.change(func(g *graph) {
		n := g.nodes[name]
		if allowed = n == nil || n.allowWrite(now); allowed {
			return // if the node has been deleted, the write itself will fail
		}
		for _, change := range nodePlan.Changes {
			if g.pools[change.Pool] != nil {
				g.journal.throttled(change.Pool, name)
				g.dirty.Utilization.Insert(change.Pool)
			}
		}
	})
	return allowed, dirty
}

// BeginWrite begins a write to a node. object may be newer than the model's version of the node.
// BeginWrite returns the plan, and a function that ends the write. Until the write ends, the
// snapshots of all pools in the plan report a write in progress. Settings of the pools named in
// `frozen` are not changed.
func (c *Cluster) BeginWrite(object *corev1.Node, frozen ...string) (plan.NodePlan, func() Dirty) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recorded := ownership.Read(object.Annotations[tidekeeperv1.OwnershipAnnotation])
	pools := c.graph.poolsOn(object, recorded.Record)
	for _, on := range pools {
		if p := c.graph.pools[on.Pool.Name]; p != nil {
			p.writes.inProgress++
		}
	}
	return plan.ForRecorded(object, recorded, pools, sets.New(frozen...)), func() Dirty {
		return c.change(func(g *graph) {
			for _, on := range pools {
				p := g.pools[on.Pool.Name]
				if p == nil || p.object.UID != on.Pool.UID {
					continue
				}
				if p.writes.inProgress--; p.writes.inProgress == 0 {
					g.dirty.Utilization.Insert(on.Pool.Name)
				}
			}
		})
	}
}

// RecordWrite records that a plan was written to a node, and adds its changes to the journal.
func (c *Cluster) RecordWrite(name string, nodePlan *plan.NodePlan) Dirty {
	return c.change(func(g *graph) {
		for _, change := range nodePlan.Changes {
			if g.pools[change.Pool] != nil {
				g.journal.change(name, change)
				g.dirty.Utilization.Insert(change.Pool)
			}
		}
		for _, pool := range nodePlan.BeingDeleted {
			if p := g.pools[pool]; p != nil {
				p.writes.cleanups[name]++
				g.dirty.Pools.Insert(pool)
			}
		}
		n := g.nodes[name]
		if n == nil {
			return
		}
		for _, pool := range nodePlan.Affected {
			n.refused.Delete(pool)
			if p := g.pools[pool]; p != nil {
				p.turns.failing.Delete(name)
				if p.writes.accepted(name) {
					g.dirty.Pools.Insert(pool)
				}
			}
		}
	})
}

// RecordFailure records that a node could not be written for the named pools, and adds the failure
// to the journal. refused is true if the API server rejected the write. The settings of the pools
// then count as rejected on the node until a write succeeds or is no longer needed.
func (c *Cluster) RecordFailure(name string, pools []string, err error, refused bool) Dirty {
	return c.change(func(g *graph) {
		n := g.nodes[name]
		if n == nil {
			return
		}
		message := text.Shorten(err.Error(), maxReasonLength)
		for _, pool := range pools {
			p := g.pools[pool]
			if p == nil {
				continue
			}
			g.dirty.Utilization.Insert(pool)
			if p.turns.fail(name) {
				g.planNode(n)
			}
			if !refused || p.writes.refused[name] != message {
				g.journal.failure(pool, name, message)
			}
			if refused {
				p.writes.refused[name] = message
				if n.refused == nil {
					n.refused = sets.New[string]()
				}
				n.refused.Insert(pool)
				g.dirty.Pools.Insert(pool)
			}
		}
	})
}

// WaitsFor reports whether the deletion of a pool has to wait for a node whose ownership annotation
// names the pool or, if `unreadable` is set, cannot be parsed. For a pool that is not being
// deleted, it returns true only for an annotation that can be parsed.
func (c *Cluster) WaitsFor(pool, name string, unreadable bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.graph.pools[pool]
	if p == nil || p.object.DeletionTimestamp.IsZero() {
		return !unreadable
	}
	return p.writes.awaits(name) && (!unreadable || p.members.Has(name))
}
