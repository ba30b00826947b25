// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import ()

// maxCleanups is how often a node is cleared of what is recorded for a pool that is
// being deleted before the pool goes without it: somebody forges the record again
// each time, and must not hold the pool.
const maxCleanups = 5

// nodesToClean returns how many nodes a pool that is being deleted waits for: those that
// have something of it on record, and those among its members whose record cannot
// be read, until their own turn comes.
func (c *Cluster) nodesToClean(p *poolState) (nodes int) {
	if t := c.owners[p.object.Name]; t != nil {
		for node := range t.nodes {
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

// WaitsFor reports whether a pool that is being deleted has to wait for a node that
// has something of it on record, or a record that cannot be read.
func (c *Cluster) WaitsFor(pool, node string, unreadable bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[pool]
	if p == nil || p.object.DeletionTimestamp.IsZero() {
		return !unreadable
	}
	return p.cleanups[node] < maxCleanups && (!unreadable || p.members.Has(node))
}
