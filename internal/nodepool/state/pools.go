// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// SetPool adds or updates a pool.
func (c *Cluster) SetPool(pool *tidekeeperv1.NodePool) Dirty {
	c.lock()
	var queued sets.Set[string]
	if p, known := c.pools[pool.Name]; known && p.ahead != "" && p.object.UID == pool.UID {
		if isOlder(pool.ResourceVersion, p.ahead) {
			return c.unlock()
		}
		if p.ahead == pool.ResourceVersion {
			queued = p.queued
		}
		p.ahead, p.queued = "", nil
	}
	c.putPool(pool)
	c.dirty.Nodes = c.dirty.Nodes.Difference(queued)
	return c.unlock()
}

// PoolWritten updates a pool from the API server's answer to a write of its finalizer or its
// status, so that nodes that wait for the write do not wait for the informer, too. They are
// queued as they are, and planned when they are written: to plan all of them takes longer than
// the first few writes. The informer has that done for all nodes of the pool. What it still has
// to show of the time before is ignored.
func (c *Cluster) PoolWritten(answer *tidekeeperv1.NodePool) Dirty {
	c.lock()
	p, known := c.pools[answer.Name]
	if !known || p.object.UID != answer.UID || !isOlder(p.object.ResourceVersion, answer.ResourceVersion) {
		return c.unlock()
	}
	old := p.object
	p.object, p.ahead = answer.DeepCopy(), answer.ResourceVersion
	c.addFormerKeys(old, answer)
	if plansDiffer(old, answer) {
		p.unplanned = true
	}
	if plan.IsActive(answer) && !equality.Semantic.DeepEqual(old.Status.Managed, answer.Status.Managed) {
		p.queued = p.outdated.Clone()
		c.dirty.Nodes = c.dirty.Nodes.Union(p.queued)
	}
	return c.unlock()
}

// addFormerKeys remembers the keys that a pool ceases to manage.
func (c *Cluster) addFormerKeys(old, pool *tidekeeperv1.NodePool) {
	for key := range setting.Managed(old) {
		if !setting.Manages(pool, key) {
			c.formerKeys.add(pool.Name, key)
		}
	}
}

// isOlder reports whether the first of two resourceVersions of one object is the older one.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func (c *Cluster) putPool(pool *tidekeeperv1.NodePool) {
	c.dirty.Pools.Insert(pool.Name)
	p, known := c.pools[pool.Name]
	if known && p.object.UID != pool.UID {
		// It was deleted and created again, and the watch did not report the deletion.
		c.dropPool(pool.Name)
		known = false
	}
	if !known {
		p = &poolState{
			members: sets.New[string](), outdated: sets.New[string](), evictionPending: sets.New[string](),
			evictionAllowed: sets.New[string](), conflicts: map[string][]plan.Conflict{},
			failing: sets.New[string](), noRoom: sets.New[string](), refused: map[string]string{}, cleanups: map[string]int{},
		}
		c.pools[pool.Name] = p
	}
	old := p.object
	p.object = pool
	if old == nil || old.Generation != pool.Generation {
		c.roomChanges++ // An answer is about one generation.
	}
	if old == nil || old.Generation != pool.Generation || old.DeletionTimestamp.IsZero() != pool.DeletionTimestamp.IsZero() {
		c.dirty.Edited.Insert(pool.Name)
	}
	if own := plan.Taints(pool); !slices.Equal(own, p.taints) {
		p.taints = own
		for name := range p.members {
			n := c.nodes[name]
			p.recount(n, n.room, p.level.causes[n])
		}
	}
	if old != nil {
		c.addFormerKeys(old, pool)
	}

	affected := sets.New[string]()
	if old == nil || !equality.Semantic.DeepEqual(old.Spec.Selector, pool.Spec.Selector) {
		affected = affected.Union(p.members)
		p.selector, p.invalid = plan.Selector(pool)
		for _, n := range c.nodes {
			c.updateMembership(n)
		}
	}
	if old == nil || p.unplanned || plansDiffer(old, pool) {
		p.unplanned = false
		affected = affected.Union(p.members)
		if o := c.owners[pool.Name]; o != nil {
			affected = affected.Union(o.nodes)
		}
	}
	for name := range affected {
		c.planNode(c.nodes[name])
	}
}

// plansDiffer reports whether the plan for a node may differ between two versions of a pool.
func plansDiffer(a, b *tidekeeperv1.NodePool) bool {
	return a.Generation != b.Generation ||
		a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		plan.IsActive(a) != plan.IsActive(b) ||
		!equality.Semantic.DeepEqual(a.Status.Managed, b.Status.Managed)
}

// DeletePool removes a pool.
func (c *Cluster) DeletePool(name string) Dirty {
	c.lock()
	c.dropPool(name)
	return c.unlock()
}

func (c *Cluster) dropPool(name string) {
	p, known := c.pools[name]
	if !known {
		return
	}
	delete(c.pools, name)
	c.dirty.Pools.Insert(name)
	for key := range setting.Managed(p.object) {
		c.formerKeys.add(name, key)
	}
	affected := p.members.Clone()
	if o := c.owners[name]; o != nil {
		affected = affected.Union(o.nodes)
	}
	for node := range affected {
		n := c.nodes[node]
		n.pools = slices.DeleteFunc(n.pools, func(other *poolState) bool { return other == p })
		c.planNode(n)
	}
}
