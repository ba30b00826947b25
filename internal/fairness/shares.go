// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// minSweep is the minimum of [Shares.sweepAt], the number of accounts at which idle accounts are
// dropped.
const minSweep = 100

// Shares holds an account for each namespace that has recently sent API requests or used workers.
type Shares struct {
	limits Limits
	clock  clock.PassiveClock

	mu       sync.Mutex
	accounts map[string]*account
	// sweepAt is the number of accounts at which the accounts of idle namespaces are dropped.
	sweepAt int
}

// New returns Shares without any accounts.
func New(l Limits, c clock.PassiveClock) *Shares {
	return &Shares{limits: l, clock: c, accounts: map[string]*account{}, sweepAt: minSweep}
}

// charge adds an API request to the use of a namespace.
func (s *Shares) charge(namespace string) {
	s.on(namespace, func(a *account, now time.Time) { a.charge(now) })
}

// work adds the given worker time to the use of a namespace.
func (s *Shares) work(namespace string, spent time.Duration) {
	s.on(namespace, func(a *account, now time.Time) { a.recent.at(now).WorkerSeconds += spent.Seconds() })
}

// wait returns the time by which a reconcile must be deferred because its namespace has exhausted
// its API request limit, and counts the deferral. It is 0 if the reconcile may begin now.
func (s *Shares) wait(namespace string) (wait time.Duration) {
	s.on(namespace, func(a *account, now time.Time) {
		if wait = a.wait(now); wait > 0 {
			a.recent.at(now).Deferred++
		}
	})
	return wait
}

// isTold reports whether an event was recently recorded because the namespace had exhausted its API
// request limit.
func (s *Shares) isTold(namespace string) (told bool) {
	s.on(namespace, func(a *account, now time.Time) { told = a.isTold(now) })
	return told
}

// tell reports whether the caller should record an event because the namespace has exhausted its
// API request limit. It returns true to a single caller within toldFor, regardless of the number of
// deferred objects.
func (s *Shares) tell(namespace string) (tell bool) {
	s.on(namespace, func(a *account, now time.Time) {
		if tell = !a.isTold(now); tell {
			a.told = now
		}
	})
	return tell
}

// on calls do with the account of a namespace and the current time, while holding the lock.
func (s *Shares) on(namespace string, do func(*account, time.Time)) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[namespace]
	if a == nil {
		s.sweep(now)
		a = newAccount(s.limits)
		s.accounts[namespace] = a
	}
	do(a, now)
}

// sweep drops the accounts of idle namespaces once there are sweepAt accounts.
func (s *Shares) sweep(now time.Time) {
	if len(s.accounts) < s.sweepAt {
		return
	}
	for namespace, a := range s.accounts {
		if a.isIdle(now) {
			delete(s.accounts, namespace)
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.accounts))
}

// used returns the resource use in the last windowMinutes minutes, by namespace.
func (s *Shares) used() map[string]Use {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	used := make(map[string]Use, len(s.accounts))
	for namespace, a := range s.accounts {
		used[namespace] = a.recent.sum(now)
	}
	return used
}
