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
	// claimAhead is the minimum time before a tick at which the tick is claimed. On an API server that is not
	// busy the write takes some milliseconds.
	claimAhead = time.Second
	// claimPace is the additional time per restart in the budget, so that the writes of many ticks at the
	// same instant are spread. maxClaimAhead is the upper bound.
	claimPace     = 10 * time.Millisecond
	maxClaimAhead = time.Minute
)

// claims remembers the ticks that this process has claimed before they were due and has not tried to send
// yet.
type claims struct {
	// spread is the period over which the claims for one instant are spread.
	spread time.Duration
	seed   maphash.Seed

	memories *memories

	mu sync.Mutex
	// namespaces has the claims of each namespace that has any.
	namespaces map[string]*namespaceClaims
}

// namespaceClaims are the claims of one namespace.
type namespaceClaims struct {
	count int
	// list has the objects of the namespace, read once when many of its ticks are due at the same time.
	list *specList
}

// claim is a claimed tick, together with the status from before the claim.
type claim struct {
	tickOf
	before *tidekeeperv1.ScheduledRestartStatus
}

// newClaims returns claims for a restart budget of the given size.
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

// ahead returns the time before a tick at which a ScheduledRestart claims it. Objects are spread over this
// period.
func (c *claims) ahead(key types.NamespacedName) time.Duration {
	place := maphash.Comparable(c.seed, key) % uint64(c.spread)
	return claimAhead + time.Duration(place)
}

// note records that a status write claimed a tick early. before is the status from before the claim; nil
// drops the claim.
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

// before returns the status from before the claim of the restart in progress. It returns nil if another
// process made the claim, or if this process has already tried to send the tick.
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

// drop removes the claim in a memory from the count of its namespace.
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

// listSince returns a list of the objects of a namespace that was started at the given time or later; nil if
// the namespace has too few claims for a list to pay off. The caller must fill the list if it is new.
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
