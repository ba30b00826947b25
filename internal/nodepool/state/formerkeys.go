// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

import "k8s.io/apimachinery/pkg/util/sets"

// maxFormerKeys is how many keys are remembered after their pool has ceased to
// vouch for them.
const maxFormerKeys = 4096

// formerKeys remembers the keys that pools have vouched for in former times, by the
// name of the pool: a pool that is gone, or one whose spec has a key no longer.
// A leader that was stopped in the midst of a write can put such a key on a node
// when nobody vouches for it any more, and then this is what says that it is ours:
// the record on the node alone does not, as it can be forged.
//
// It lasts as long as the process, which is on a standby as well.
type formerKeys struct {
	keys map[string]sets.Set[setting.Key]
	// order is how they were added, the oldest first.
	order []formerKey
}

type formerKey struct {
	pool string
	key  setting.Key
}

// add remembers a key, and forgets the oldest if there are too many.
func (r *formerKeys) add(pool string, s setting.Key) {
	if r.keys[pool].Has(s) {
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
	r.keys[pool].Insert(s)
	r.order = append(r.order, formerKey{pool, s})
}

// of returns the keys that a pool of that name has vouched for in former times.
func (r *formerKeys) of(pool string) sets.Set[setting.Key] { return r.keys[pool] }
