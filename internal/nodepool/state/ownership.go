// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// addOwnership adds the node's ownership record to the counts of the pools that it names.
func (c *Cluster) addOwnership(n *nodeState) {
	for pool, owned := range n.ownership {
		o := c.owners[pool]
		if o == nil {
			o = &poolOwnership{nodes: sets.New[string](), keys: map[setting.Key]int{}}
			c.owners[pool] = o
		}
		o.nodes.Insert(n.name)
		for key := range owned {
			o.keys[key]++
		}
		c.ownershipChanged(pool)
	}
}

// removeOwnership is the opposite of addOwnership.
func (c *Cluster) removeOwnership(n *nodeState) {
	for pool, owned := range n.ownership {
		o := c.owners[pool]
		o.nodes.Delete(n.name)
		for key := range owned {
			if o.keys[key]--; o.keys[key] == 0 {
				delete(o.keys, key)
			}
		}
		if len(o.nodes) == 0 {
			delete(c.owners, pool)
		}
		c.ownershipChanged(pool)
	}
}

// ownershipChanged queues the pool, if it exists: a forged record may name thousands
// of pools that do not.
func (c *Cluster) ownershipChanged(pool string) {
	if c.pools[pool] != nil {
		c.dirty.Pools.Insert(pool)
	}
}
