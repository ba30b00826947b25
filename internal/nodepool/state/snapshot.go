// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// AllKeys returns all nodes that need a write, and all pools, for a controller that starts.
func (c *Cluster) AllKeys() Dirty {
	c.lock()
	for name, n := range c.nodes {
		if n.summary.NeedsWrite {
			c.dirty.Nodes.Insert(name)
		}
	}
	for name := range c.pools {
		c.dirty.Edited.Insert(name)
	}
	return c.unlock()
}

// PoolNames returns the names of all pools.
func (c *Cluster) PoolNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pools))
}

// StatusWritten remembers when the status of the pool was written.
func (c *Cluster) StatusWritten(pool string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, known := c.pools[pool]; known {
		p.statusWritten = at
	}
}

// PoolSnapshot is the state of a pool at one time.
type PoolSnapshot struct {
	Pool *tidekeeperv1.NodePool
	// Invalid is why the selector of the pool cannot be used, if so.
	Invalid error

	Nodes, Ready                     int
	Capacity, Allocatable, Requested corev1.ResourceList
	Percent                          map[corev1.ResourceName]int32

	// UsableNodes, Usable, Free, Lost and Slots are as in the status; see
	// [capacity.Cluster.Level]. LargestSlot is the most that is free on one node, of each
	// resource by itself.
	UsableNodes               int
	Usable, Free, LargestSlot corev1.ResourceList
	Lost                      []tidekeeperv1.Lost
	Slots                     []tidekeeperv1.Slot

	// StatusWritten is when this process last wrote the pool's status, zero if it has not.
	StatusWritten time.Time

	// Outdated is how many members do not match the pool's spec yet, EvictionPending how
	// many of them wait for a NoExecute taint.
	Outdated, EvictionPending int
	// HeldBackBy is what these wait for, if a freeze is in force. The caller sets it.
	HeldBackBy string

	// Conflicted is the number of members on which an older pool has a key that this pool
	// asks for. FirstConflict is one such conflict.
	Conflicted    int
	FirstConflict plan.Conflict

	// OwnedNodes is the number of nodes whose record names the pool; while the pool is being
	// deleted, the number of nodes that it waits for. OwnedKeys are the recorded keys.
	OwnedNodes int
	OwnedKeys  sets.Set[setting.Key]
	// Writing reports whether a write to a node is in progress whose plan includes the pool.
	Writing bool

	// Refused is the number of nodes to which the pool's settings cannot be written.
	// RefusedNode is one of them, with the reason.
	Refused                    int
	RefusedNode, RefusedReason string
}

// Pool returns the current state of a pool, or false if no pool has that name.
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
		Requested:       requested.ListOf(names),
		Percent:         resources.Percent(requested, allocatable),
		StatusWritten:   p.statusWritten,
		Outdated:        len(p.outdated),
		EvictionPending: len(p.evictionPending),
		Conflicted:      len(p.conflicts),
		OwnedKeys:       sets.New[setting.Key](),
		Writing:         p.writes > 0,
	}
	p.level.report(&v, p.allocatable, names)
	if len(p.conflicts) > 0 {
		v.FirstConflict = p.conflicts[slices.Min(slices.Collect(maps.Keys(p.conflicts)))][0]
	}
	if o := c.owners[name]; o != nil {
		v.OwnedNodes = len(o.nodes)
		for key := range o.keys {
			v.OwnedKeys.Insert(key)
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
