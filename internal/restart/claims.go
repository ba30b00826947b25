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
	// spread is the period over which the claims of an instant are spread.
	spread time.Duration
	seed   maphash.Seed

	memories *memories

	mu sync.Mutex
	// namespaces has the claims of each namespace that has any.
	namespaces map[string]*namespaceClaims
}

// namespaceClaims are the claims of a namespace.
type namespaceClaims struct {
	count int
	// list has the objects of the namespace as they were when many ticks were due.
	list *specList
}

// claim is a tick that was claimed, and the status without the claim.
type claim struct {
	tickOf
	before *tidekeeperv1.ScheduledRestartStatus
}

// newClaims returns claims for a budget of that many restarts.
func newClaims(budget int, memories *memories) *claims {
	c := &claims{
		spread:     min(time.Duration(budget)*claimPace, maxClaimAhead-claimAhead),
		seed:       maphash.MakeSeed(),
		memories:   memories,
		namespaces: map[string]*namespaceClaims{},
	}
	memories.onForget(c.drop)
	return c
}

// ahead returns how long before they are due the ticks of a ScheduledRestart are claimed: its
// place in the spread.
func (c *claims) ahead(key types.NamespacedName) time.Duration {
	place := maphash.Comparable(c.seed, key) % uint64(c.spread)
	return claimAhead + time.Duration(place)
}

// note records that a write of the status claimed a tick early. before is the status without the claim;
// nil forgets the claim.
func (c *claims) note(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, before *tidekeeperv1.ScheduledRestartStatus) {
	if before == nil || restart.Status.Active == nil {
		c.forget(key)
		return
	}
	c.memories.with(key, func(m *memory) {
		if m.claim == nil {
			c.add(key.Namespace)
		}
		m.claim = &claim{tickInProgress(restart), before}
	})
}

// add counts a claim in a namespace.
func (c *claims) add(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces[namespace] == nil {
		c.namespaces[namespace] = &namespaceClaims{}
	}
	c.namespaces[namespace].count++
}

// before returns the status before the tick of the restart in progress was claimed, or nil
// if this process has not claimed it, or has tried to send it.
func (c *claims) before(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (before *tidekeeperv1.ScheduledRestartStatus) {
	c.memories.with(key, func(m *memory) {
		if m.claim != nil && m.claim.isInProgress(restart) {
			before = m.claim.before
		}
	})
	return before
}

// forget drops the claim of a ScheduledRestart.
func (c *claims) forget(key types.NamespacedName) {
	c.memories.with(key, func(m *memory) {
		c.drop(key, m)
		m.claim = nil
	})
}

// drop no longer counts the claim in a memory.
func (c *claims) drop(key types.NamespacedName, m *memory) {
	if m.claim == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[key.Namespace]
	if n.count--; n.count == 0 {
		delete(c.namespaces, key.Namespace)
	}
}

// listSince returns a list of the objects of a namespace that was begun at the given time or
// later; nil if the namespace has too few claims to read several objects. The caller
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
	case n.count < manyClaims:
		return nil, false
	}
	n.list = newSpecList(now)
	return n.list, true
}
