// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// ownerIndex indexes the ownership annotations of all nodes by pool name. For each pool, it holds
// the nodes whose annotation names the pool and, for each setting key, the number of nodes whose
// annotation records the key for the pool. Pools in the index need not exist.
type ownerIndex map[string]*ownedByPool

type ownedByPool struct {
	nodes sets.Set[string]
	keys  map[setting.Key]int
}

// add adds a node's ownership record to the index.
func (x ownerIndex) add(node string, record ownership.Record) {
	for pool, owned := range record {
		o := x[pool]
		if o == nil {
			o = &ownedByPool{nodes: sets.New[string](), keys: map[setting.Key]int{}}
			x[pool] = o
		}
		o.nodes.Insert(node)
		for key := range owned {
			o.keys[key]++
		}
	}
}

// remove removes a node's ownership record from the index.
func (x ownerIndex) remove(node string, record ownership.Record) {
	for pool, owned := range record {
		o := x[pool]
		o.nodes.Delete(node)
		for key := range owned {
			if o.keys[key]--; o.keys[key] == 0 {
				delete(o.keys, key)
			}
		}
		if len(o.nodes) == 0 {
			delete(x, pool)
		}
	}
}

// nodes returns the names of the nodes whose ownership annotation names the pool. The caller must
// not modify the set.
func (x ownerIndex) nodes(pool string) sets.Set[string] {
	if o := x[pool]; o != nil {
		return o.nodes
	}
	return nil
}

// keys returns the keys recorded for the pool in any node's ownership annotation.
func (x ownerIndex) keys(pool string) sets.Set[setting.Key] {
	keys := sets.New[setting.Key]()
	if o := x[pool]; o != nil {
		for key := range o.keys {
			keys.Insert(key)
		}
	}
	return keys
}
