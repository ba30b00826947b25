// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// AllKeys returns all there is to look at, for a controller that starts. It
// also makes what happens from now on news.
func (c *Cluster) AllKeys() Dirty {
	c.lock()
	for name, n := range c.nodes {
		if n.summary.NeedsWrite {
			c.dirty.Nodes.Insert(name)
		}
	}
	for name := range c.pools {
		c.dirty.Pools.Insert(name)
	}
	return c.unlock()
}

// PoolNames returns the names of all pools.
func (c *Cluster) PoolNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pools))
}

// PoolSnapshot is a pool as it stands.
type PoolSnapshot struct {
	Pool *tidekeeperv1.NodePool
	// Invalid is why the pool selects nothing, if it cannot.
	Invalid error

	Nodes, Ready                     int
	Capacity, Allocatable, Requested corev1.ResourceList
	Percent                          map[corev1.ResourceName]int32

	// Outdated is how many members do not look like the pool yet, heldBack how
	// many of them wait for a NoExecute taint.
	Outdated, EvictionPending int

	// Conflicted is how many members have a key that an older pool has; first
	// is one such conflict.
	Conflicted    int
	FirstConflict plan.Conflict

	// OwnedNodes is how many nodes have something of the pool on record, held
	// what that is.
	OwnedNodes int
	OwnedKeys  sets.Set[setting.Key]
	// Writing tells whether a node is being written to with the pool in mind.
	Writing bool

	// Refused is how many nodes cannot be written for the pool, with one of them
	// and the reason.
	Refused                    int
	RefusedNode, RefusedReason string
}

// Pool returns a pool as it stands, or false if there is none of that name.
func (c *Cluster) Pool(name string) (PoolSnapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.pools[name]
	if !known {
		return PoolSnapshot{}, false
	}
	names := resources.ReportedNames(p.capacity, p.allocatable)
	requested, allocatable := p.requested.Only(names), p.allocatable.Only(names)
	v := PoolSnapshot{
		Pool:            p.object,
		Invalid:         p.invalid,
		Nodes:           len(p.members),
		Ready:           p.ready,
		Capacity:        p.capacity.Only(names).List(),
		Allocatable:     allocatable.List(),
		Requested:       requested.List(),
		Percent:         resources.Percent(requested, allocatable),
		Outdated:        len(p.outdated),
		EvictionPending: len(p.evictionPending),
		Conflicted:      len(p.conflicts),
		OwnedKeys:       sets.New[setting.Key](),
		Writing:         p.writes > 0,
	}
	if len(p.conflicts) > 0 {
		v.FirstConflict = p.conflicts[slices.Min(slices.Collect(maps.Keys(p.conflicts)))][0]
	}
	if t := c.owners[name]; t != nil {
		v.OwnedNodes = len(t.nodes)
		for s := range t.keys {
			v.OwnedKeys.Insert(s)
		}
	}
	if !p.object.DeletionTimestamp.IsZero() {
		v.OwnedNodes = c.nodesToClean(p)
	}
	v.Refused = len(p.noRoom) + len(p.refused)
	if len(p.noRoom) > 0 {
		v.RefusedNode, v.RefusedReason = slices.Min(p.noRoom.UnsortedList()), plan.NoRoomReason
	}
	if len(p.refused) > 0 {
		v.RefusedNode = slices.Min(slices.Collect(maps.Keys(p.refused)))
		v.RefusedReason = p.refused[v.RefusedNode]
	}
	return v, true
}
