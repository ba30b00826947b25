// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// evictionAttempts is what this process remembers of each restart in progress that evicts pods.
type evictionAttempts struct {
	mu  sync.Mutex
	all map[types.NamespacedName]attemptsFor
}

// attemptsFor is what is remembered of the restart for a tick.
type attemptsFor struct {
	uid      types.UID
	tick     time.Time
	attempts decision.Attempts
}

// of returns what is remembered of the restart in progress.
func (e *evictionAttempts) of(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) decision.Attempts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current(key, restart)
}

// note changes what is remembered of the restart in progress; there is nothing to remember before
// one is.
func (e *evictionAttempts) note(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, change func(*decision.Attempts)) {
	if restart.Status.Active == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.current(key, restart)
	change(&a)
	if e.all == nil {
		e.all = map[types.NamespacedName]attemptsFor{}
	}
	e.all[key] = attemptsFor{restart.UID, restart.Status.Active.ScheduledTime.Time, a}
}

// current returns what is remembered of the restart in progress, and forgets the one before it.
func (e *evictionAttempts) current(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) decision.Attempts {
	active := restart.Status.Active
	if a, ok := e.all[key]; ok && active != nil && a.uid == restart.UID && a.tick.Equal(active.ScheduledTime.Time) {
		return a.attempts
	}
	delete(e.all, key)
	return decision.Attempts{}
}

func (e *evictionAttempts) forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, key)
}

// longestRefused returns for how long the evictions of a restart in progress have been refused,
// one after the other: the longest of all of them, 0 if none was refused last.
func (e *evictionAttempts) longestRefused(now time.Time) (longest time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.all {
		if a.attempts.Refusal != "" {
			longest = max(longest, now.Sub(a.attempts.RefusedSince))
		}
	}
	return longest
}
