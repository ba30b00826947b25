// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"sync"
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

// fights slows down writes to nodes that never come to rest: another program
// wants another value of a key, or two pools move a node in and out of each
// other, as what one puts there changes what the other selects. No schema can
// see that coming.
type fights struct {
	mu    sync.Mutex
	nodes map[string]*rate.Limiter
}

func newFights() *fights { return &fights{nodes: map[string]*rate.Limiter{}} }

// allow tells whether the node may be written now.
func (f *fights) allow(node string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter, known := f.nodes[node]
	if !known {
		limiter = rate.NewLimiter(rate.Every(fightInterval), fightBurst)
		f.nodes[node] = limiter
	}
	return limiter.AllowN(now, 1)
}

// forget drops what is kept of a node that is gone.
func (f *fights) forget(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.nodes, node)
}
