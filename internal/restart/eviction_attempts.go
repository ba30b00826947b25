// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// evictionAttempts tracks each ScheduledRestart's attempts to evict pods for its restart in
// progress.
type evictionAttempts struct{ memories *memories }

// attemptsFor holds the eviction attempts for a restart, which is identified by its tick (its
// scheduled time).
type attemptsFor struct {
	tickOf
	attempts decision.Attempts
}

// of returns the eviction attempts for the restart in progress.
func (e *evictionAttempts) of(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart) (attempts decision.Attempts) {
	e.memories.with(key, func(m *memory) { attempts = m.currentAttempts(restart) })
	return attempts
}

// note calls the function change with the eviction attempts for the restart in progress, and stores
// the changed attempts. Without a restart in progress, it does nothing.
func (e *evictionAttempts) note(key types.NamespacedName, restart *tidekeeperv1.ScheduledRestart, change func(*decision.Attempts)) {
	if restart.Status.Active == nil {
		return
	}
	e.memories.with(key, func(m *memory) {
		attempts := m.currentAttempts(restart)
		change(&attempts)
		m.attempts = &attemptsFor{tickInProgress(restart), attempts}
	})
}

// currentAttempts returns the eviction attempts for the restart in progress, and drops the attempts
// for earlier restarts.
func (m *memory) currentAttempts(restart *tidekeeperv1.ScheduledRestart) decision.Attempts {
	if m.attempts != nil && m.attempts.isInProgress(restart) {
		return m.attempts.attempts
	}
	m.attempts = nil
	return decision.Attempts{}
}

// longestRefused returns the longest time for which all evictions for a restart have been rejected.
// It is 0 if no restart's last eviction was rejected.
func (e *evictionAttempts) longestRefused(now time.Time) (longest time.Duration) {
	e.memories.each(func(_ types.NamespacedName, m *memory) {
		if m.attempts != nil && m.attempts.attempts.Refusal != "" {
			longest = max(longest, now.Sub(m.attempts.attempts.RefusedSince))
		}
	})
	return longest
}
