// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// minSweep is the minimum of sweepAt.
const minSweep = 100

// Shares has an account for each namespace with any use in the last minutes.
type Shares struct {
	limits Limits
	clock  clock.PassiveClock

	mu       sync.Mutex
	accounts map[string]*account
	// sweepAt is the number of accounts at which idle accounts are closed.
	sweepAt int
}

// New returns shares without any use.
func New(l Limits, c clock.PassiveClock) *Shares {
	return &Shares{limits: l, clock: c, accounts: map[string]*account{}, sweepAt: minSweep}
}

// charge charges a namespace with a request.
func (s *Shares) charge(namespace string) {
	s.on(namespace, func(a *account, now time.Time) { a.charge(now) })
}

// work charges a namespace with the time of a worker.
func (s *Shares) work(namespace string, spent time.Duration) {
	s.on(namespace, func(a *account, now time.Time) { a.recent.at(now).WorkerSeconds += spent.Seconds() })
}

// wait returns the time for which a reconcile is deferred because the namespace has used up its
// requests; 0 if it has not.
func (s *Shares) wait(namespace string) (wait time.Duration) {
	s.on(namespace, func(a *account, now time.Time) {
		if wait = a.wait(now); wait > 0 {
			a.recent.at(now).Deferred++
		}
	})
	return wait
}

// isTold reports whether there is a recent event that says that a namespace has used up its requests.
func (s *Shares) isTold(namespace string) (told bool) {
	s.on(namespace, func(a *account, now time.Time) { told = a.isTold(now) })
	return told
}

// tell reports whether an event is to say that a namespace has used up its requests: to one caller within
// toldFor, however many of its objects wait.
func (s *Shares) tell(namespace string) (tell bool) {
	s.on(namespace, func(a *account, now time.Time) {
		if tell = !a.isTold(now); tell {
			a.told = now
		}
	})
	return tell
}

// on calls do with the account of a namespace.
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

// sweep closes the accounts of idle namespaces if there are many.
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

// used returns the use by each namespace in the last minutes.
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
