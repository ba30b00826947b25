// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// ownerIndex indexes the ownership records of all nodes by pool: the nodes whose record names
// the pool, and for each key the number of these nodes. The pool need not exist.
type ownerIndex map[string]*ownedByPool

type ownedByPool struct {
	nodes sets.Set[string]
	keys  map[setting.Key]int
}

// add adds the record of a node.
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

// remove is the opposite of add.
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

// nodes returns the names of the nodes whose records name the pool. The caller must not change
// the set.
func (x ownerIndex) nodes(pool string) sets.Set[string] {
	if o := x[pool]; o != nil {
		return o.nodes
	}
	return nil
}

// keys returns the keys recorded for the pool on any node.
func (x ownerIndex) keys(pool string) sets.Set[setting.Key] {
	keys := sets.New[setting.Key]()
	if o := x[pool]; o != nil {
		for key := range o.keys {
			keys.Insert(key)
		}
	}
	return keys
}
