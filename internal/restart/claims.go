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
	// claimAhead is the minimum time before a tick at which a ScheduledRestart claims it, that is,
	// writes its restart to the status in advance. On an idle API server the write takes some
	// milliseconds.
	claimAhead = time.Second
	// claimPace is multiplied by the restart budget to get the additional period over which claims
	// are spread, so that ticks with the same due time are not all claimed at the same time.
	// maxClaimAhead limits the sum of this period and claimAhead.
	claimPace     = 10 * time.Millisecond
	maxClaimAhead = time.Minute
)

// claims tracks the ticks that this process claimed before they were due and has not yet tried to
// send.
type claims struct {
	// spread is the period over which the claims of ticks with the same due time are distributed.
	spread time.Duration
	seed   maphash.Seed

	memories *memories

	mu sync.Mutex
	// namespaces maps each namespace with claimed ticks to the state of these claims.
	namespaces map[string]*namespaceClaims
}

// namespaceClaims is the state of a namespace's claims.
type namespaceClaims struct {
	count int
	// list is the last shared list of the namespace's ScheduledRestarts. When many ticks of the
	// namespace are due at the same time, this list replaces reads of single objects.
	list *specList
}

// claim is a tick that was claimed before it was due, together with the status before the claim.
type claim struct {
	tickOf
	before *tidekeeperv1.ScheduledRestartStatus
}

// newClaims returns an empty set of claims. budget is the maximum number of restarts in progress.
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

// ahead returns the time before a tick at which the given ScheduledRestart claims it. The time is
// random, so that claims are spread, but it is constant for each ScheduledRestart.
func (c *claims) ahead(key types.NamespacedName) time.Duration {
	place := maphash.Comparable(c.seed, key) % uint64(c.spread)
	return claimAhead + time.Duration(place)
}

// note records that a status write claimed a tick early. before is the status before the claim. If
// before is nil, note drops an earlier claim.
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

// add increments the number of the claims in a namespace.
func (c *claims) add(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces[namespace] == nil {
		c.namespaces[namespace] = &namespaceClaims{}
	}
	c.namespaces[namespace].count++
}

// before returns the status before the claim of the restart in progress. It returns nil if another
// process made the claim, or if this process has already tried to send the tick.
func (c *claims) before(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (before *tidekeeperv1.ScheduledRestartStatus) {
	c.memories.with(key, func(m *memory) {
		if m.claim != nil && m.claim.isInProgress(restart) {
			before = m.claim.before
		}
	})
	return before
}

// forget drops the claim of a ScheduledRestart, for example after an attempt to send its tick.
func (c *claims) forget(key types.NamespacedName) {
	c.memories.with(key, func(m *memory) {
		c.drop(key, m)
		m.claim = nil
	})
}

// drop decrements the number of claims of the namespace if the memory m holds a claim.
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

// listSince returns a list of the namespace's ScheduledRestarts that was requested at the time due
// or later. If there is no such list yet and the namespace has fewer claims than manyClaims, for
// which a list does not pay off, it returns nil. If isNew is true, the caller must fill the list.
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
