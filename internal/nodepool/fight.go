// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"time"

	"golang.org/x/time/rate"
)

// A node may be written so many times at once, and from then on once in so
// long: enough for whatever people do, and little enough that a fight hurts
// nobody.
const (
	fightBurst    = 20
	fightInterval = 10 * time.Second
)

// mayWrite tells whether the node may be written now, and counts that as a write.
// It slows down writes to nodes that never come to rest: another program wants
// another value of a key, or two pools move a node in and out of each other, as
// what one puts there changes what the other selects. No schema can see that
// coming.
func (f *fleet) mayWrite(node string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[node]
	if n == nil || n.object == nil {
		return true // It is gone, as its write will find out.
	}
	if n.writes == nil {
		n.writes = rate.NewLimiter(rate.Every(fightInterval), fightBurst)
	}
	return n.writes.AllowN(now, 1)
}
