// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// maxFormerKeys is the maximum number of remembered keys that pools no longer manage.
const maxFormerKeys = 4096

// formerKeys remembers, by pool name, the keys that pools managed in the past. These are keys of
// deleted pools, and keys removed from a spec. A leader that is stopped in the middle of a write
// can still set such a key on a node after the pool has stopped managing it. The setting is then
// removed because formerKeys contains the key. The node's ownership annotation alone is no
// sufficient reason to remove it, because the annotation can be forged.
//
// The keys are kept until the process exits, even in a standby.
type formerKeys struct {
	keys map[string]sets.Set[setting.Key]
	// order lists the keys in the order of their addition, oldest first.
	order []formerKey
}

type formerKey struct {
	pool string
	key  setting.Key
}

// add remembers a key. If there are too many keys, it drops the oldest.
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

// forPool returns the keys that pools with the given name managed in the past.
func (r *formerKeys) forPool(pool string) sets.Set[setting.Key] { return r.keys[pool] }
