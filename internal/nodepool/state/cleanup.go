// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

// maxCleanups is how many times a pool that is being deleted is removed from a node's record
// before the pool no longer waits for the node: a client that forges the record again each
// time must not block the deletion.
const maxCleanups = 5

// nodesToClean returns how many nodes a pool that is being deleted waits for: those whose
// record names it, and those of its members whose record cannot be read, until it has been
// rewritten.
func (c *Cluster) nodesToClean(p *poolState) (nodes int) {
	if o := c.owners[p.object.Name]; o != nil {
		for node := range o.nodes {
			if p.cleanups[node] < maxCleanups {
				nodes++
			}
		}
	}
	for node := range p.members {
		if c.nodes[node].unreadable && p.cleanups[node] < maxCleanups {
			nodes++
		}
	}
	return nodes
}

// WaitsFor reports whether the pool has to wait for a node whose record names it, or cannot
// be read.
func (c *Cluster) WaitsFor(pool, node string, unreadable bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[pool]
	if p == nil || p.object.DeletionTimestamp.IsZero() {
		return !unreadable
	}
	return p.cleanups[node] < maxCleanups && (!unreadable || p.members.Has(node))
}
