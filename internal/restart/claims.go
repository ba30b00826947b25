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
	// claimAhead is the minimum time before a tick (the scheduled time of a restart) at which the
	// tick is claimed, that is, the restart is written to the status in advance. On an idle API
	// server, the write takes some milliseconds.
	claimAhead = time.Second
	// claimPace is multiplied by the maximum number of restarts in progress. The result is the
	// period over which the status writes for ticks with the same due time are distributed, so that
	// they are not all made at the same time. maxClaimAhead limits the sum of this period and
	// claimAhead.
	claimPace     = 10 * time.Millisecond
	maxClaimAhead = time.Minute
)

// claims tracks the ticks that this process has claimed, that is, written to status.active before
// they were due, and has not tried to send to their targets yet. A tick is the scheduled time of a
// restart.
type claims struct {
	// spread is the period over which the status writes for ticks with the same due time are
	// distributed.
	spread time.Duration
	seed   maphash.Seed

	memories *memories

	mu sync.Mutex
	// namespaces maps each namespace in which ticks were claimed early to the state of these
	// claims.
	namespaces map[string]*namespaceClaims
}

// namespaceClaims describes the ticks (scheduled times of restarts) of a namespace that were
// claimed before they were due. count is the number of these ticks.
type namespaceClaims struct {
	count int
	// list is the last shared list of the namespace's ScheduledRestarts. When many ticks of the
	// namespace are due at the same time, one list replaces a read of each ScheduledRestart.
	list *specList
}

// claim is a tick that was claimed, that is, written to status.active before it was due. before is
// the status before that write.
type claim struct {
	tickOf
	before *tidekeeperv1.ScheduledRestartStatus
}

// newClaims returns a claims without any tick. budget is the maximum number of restarts in
// progress.
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

// ahead returns the time before a tick (a scheduled time) at which its restart is written to the
// status of the given ScheduledRestart. It is random, so that not all ScheduledRestarts are written
// at the same time, but it is always the same for the same ScheduledRestart.
func (c *claims) ahead(key types.NamespacedName) time.Duration {
	place := maphash.Comparable(c.seed, key) % uint64(c.spread)
	return claimAhead + time.Duration(place)
}

// note records that a status write claimed a tick before it was due. before is the status before
// that write. If before is nil, the write claimed no tick, and note drops the record of an earlier
// claim.
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

// add increments the number of ticks in a namespace that were claimed before they were due.
func (c *claims) add(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces[namespace] == nil {
		c.namespaces[namespace] = &namespaceClaims{}
	}
	c.namespaces[namespace].count++
}

// before returns the status before this process wrote the restart in progress to it. It returns nil
// if the restart was already due then, if another process wrote it, or if this process has since
// tried to send the tick (the scheduled time) to the target.
func (c *claims) before(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (before *tidekeeperv1.ScheduledRestartStatus) {
	c.memories.with(key, func(m *memory) {
		if m.claim != nil && m.claim.isInProgress(restart) {
			before = m.claim.before
		}
	})
	return before
}

// forget drops the record that the tick of a ScheduledRestart was claimed before it was due, for
// example after an attempt to send the tick to the target.
func (c *claims) forget(key types.NamespacedName) {
	c.memories.with(key, func(m *memory) {
		c.drop(key, m)
		m.claim = nil
	})
}

// drop decrements the number of claimed ticks in the namespace of a ScheduledRestart, if m, its
// in-memory state, contains a claimed tick.
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
// or later. If there is none, it returns a new list, which the caller must fill, and isNew is true.
// It returns nil instead if the namespace has fewer claims than manyClaims, since a few reads of
// single objects cost less than a list.
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
