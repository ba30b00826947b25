// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const (
	// claimAhead is how long before it is due a tick is claimed at the latest: on an API
	// server that is not busy the write takes some milliseconds.
	claimAhead = time.Second
	// claimPace is how much earlier claims begin for each restart that the budget allows, so
	// that the writes of many ticks at once are spread, and maxClaimAhead the most.
	claimPace     = 10 * time.Millisecond
	maxClaimAhead = time.Minute
)

// claims remembers the ticks that this process has claimed before they were due, and has not
// tried to send yet.
type claims struct {
	// spread is the period over which the claims of one instant are spread.
	spread time.Duration
	seed   maphash.Seed

	mu      sync.Mutex
	claimed map[types.NamespacedName]claim
}

// claim is a tick that was claimed, and the status without the claim.
type claim struct {
	uid    types.UID
	tick   time.Time
	before *tidekeeperv1.ScheduledRestartStatus
}

// newClaims returns claims for a budget of that many restarts.
func newClaims(budget int) *claims {
	return &claims{
		spread:  min(time.Duration(budget)*claimPace, maxClaimAhead-claimAhead),
		seed:    maphash.MakeSeed(),
		claimed: map[types.NamespacedName]claim{},
	}
}

// ahead returns how long before they are due the ticks of a ScheduledRestart are claimed: its
// place in the spread.
func (c *claims) ahead(key types.NamespacedName) time.Duration {
	place := maphash.Comparable(c.seed, key) % uint64(c.spread)
	return claimAhead + time.Duration(place)
}

// note records what a write of the status has claimed; nil if it has claimed nothing ahead of
// its time.
func (c *claims) note(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, before *tidekeeperv1.ScheduledRestartStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before == nil || restart.Status.Active == nil {
		delete(c.claimed, key)
		return
	}
	c.claimed[key] = claim{restart.UID, restart.Status.Active.ScheduledTime.Time, before}
}

// before returns the status before the tick of the restart in progress was claimed, or nil
// if this process has not claimed it, or has tried to send it.
func (c *claims) before(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) *tidekeeperv1.ScheduledRestartStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	claimed, ok := c.claimed[key]
	if active := restart.Status.Active; !ok || active == nil || claimed.uid != restart.UID || !claimed.tick.Equal(active.ScheduledTime.Time) {
		return nil
	}
	return claimed.before
}

// forget drops what was claimed.
func (c *claims) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.claimed, key)
}
