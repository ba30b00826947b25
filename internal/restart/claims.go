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

	mu sync.Mutex
	// namespaces has the claims of each namespace that has any.
	namespaces map[string]*namespaceClaims
}

// namespaceClaims are the claims of one namespace.
type namespaceClaims struct {
	claimed map[types.NamespacedName]claim
	// list is how the objects of the namespace were when many ticks were due.
	list *specList
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
		spread:     min(time.Duration(budget)*claimPace, maxClaimAhead-claimAhead),
		seed:       maphash.MakeSeed(),
		namespaces: map[string]*namespaceClaims{},
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
	if before == nil || restart.Status.Active == nil {
		c.forget(key)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[key.Namespace]
	if n == nil {
		n = &namespaceClaims{claimed: map[types.NamespacedName]claim{}}
		c.namespaces[key.Namespace] = n
	}
	n.claimed[key] = claim{restart.UID, restart.Status.Active.ScheduledTime.Time, before}
}

// before returns the status before the tick of the restart in progress was claimed, or nil
// if this process has not claimed it, or has tried to send it.
func (c *claims) before(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) *tidekeeperv1.ScheduledRestartStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[key.Namespace]
	if n == nil {
		return nil
	}
	claimed, ok := n.claimed[key]
	if active := restart.Status.Active; !ok || active == nil || claimed.uid != restart.UID || !claimed.tick.Equal(active.ScheduledTime.Time) {
		return nil
	}
	return claimed.before
}

// forget drops what was claimed.
func (c *claims) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[key.Namespace]
	if n == nil {
		return
	}
	if delete(n.claimed, key); len(n.claimed) == 0 {
		delete(c.namespaces, key.Namespace)
	}
}

// listSince returns a list of the objects of a namespace that was begun at the given time or
// later; nil if the namespace has too few claims to read more than one object. The caller
// has to fill the list if it is new.
func (c *claims) listSince(namespace string, due, now time.Time) (list *specList, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[namespace]
	switch {
	case n == nil:
		return nil, false
	case n.list != nil && !n.list.begun.Before(due):
		return n.list, false
	case len(n.claimed) < manyClaims:
		return nil, false
	}
	n.list = newSpecList(now)
	return n.list, true
}
