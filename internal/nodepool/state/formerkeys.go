// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// maxFormerKeys is the maximum number of keys that are remembered after their pool has
// ceased to manage them.
const maxFormerKeys = 4096

// formerKeys remembers the keys that pools managed in the past, by the name of the pool: keys
// of deleted pools, and keys removed from a spec. A leader that is stopped in the middle of a
// write can put such a key on a node after the pool has ceased to manage it. Then formerKeys
// proves that the setting is the pool's: the record on the node is not sufficient, as it can be
// forged.
//
// The keys live as long as the process, also in a standby.
type formerKeys struct {
	keys map[string]sets.Set[setting.Key]
	// order is the order in which the keys were added, oldest first.
	order []formerKey
}

type formerKey struct {
	pool string
	key  setting.Key
}

// add remembers a key, and forgets the oldest if there are too many.
func (r *formerKeys) add(pool string, key setting.Key) {
	if r.keys[pool].Has(key) {
		return
	}
	if len(r.order) == maxFormerKeys {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.keys[oldest.pool].Delete(oldest.key)
		if len(r.keys[oldest.pool]) == 0 {
			delete(r.keys, oldest.pool)
		}
	}
	if r.keys == nil {
		r.keys = map[string]sets.Set[setting.Key]{}
	}
	if r.keys[pool] == nil {
		r.keys[pool] = sets.New[setting.Key]()
	}
	r.keys[pool].Insert(key)
	r.order = append(r.order, formerKey{pool, key})
}

// forPool returns the keys that pools of that name managed in the past.
func (r *formerKeys) forPool(pool string) sets.Set[setting.Key] { return r.keys[pool] }
