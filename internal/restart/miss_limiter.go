// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// These limit how many ticks without a restart are reported per namespace: each costs a
// write and an event, and users who may create ScheduledRestarts decide how many there are
// and how often they tick. Deferred ticks are reported later, together.
const (
	missesPerSecond = 5
	missesBurst     = 100
)

// missLimiter limits how many missed and skipped ticks of a namespace are reported.
type missLimiter struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
	turns    map[types.NamespacedName]time.Time
}

func newMissLimiter() *missLimiter {
	return &missLimiter{limiters: map[string]*rate.Limiter{}, turns: map[types.NamespacedName]time.Time{}}
}

// turn returns when a decision may be carried out, zero if it may be now. Only decisions
// that report ticks without a restart, and do nothing else, have to wait.
func (m *missLimiter) turn(key types.NamespacedName, d *decision.Output, now time.Time) time.Time {
	limited := len(d.Records) > 0 && d.Status.Active == nil
	for i := range d.Records {
		limited = limited && d.Records[i].Trigger == tidekeeperv1.TriggerSchedule && d.Records[i].StartedTime == nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, waits := m.turns[key]
	if !limited || waits && !at.After(now) {
		delete(m.turns, key)
		return time.Time{}
	}
	if waits {
		return at
	}
	limiter := m.limiters[key.Namespace]
	if limiter == nil {
		m.dropIdle(now)
		limiter = rate.NewLimiter(missesPerSecond, missesBurst)
		m.limiters[key.Namespace] = limiter
	}
	delay := limiter.ReserveN(now, 1).DelayFrom(now)
	if delay == 0 {
		return time.Time{}
	}
	m.turns[key] = now.Add(delay)
	return m.turns[key]
}

// dropIdle drops the limiters of namespaces that have been quiet, so that there are not
// many more than have reported something recently.
func (m *missLimiter) dropIdle(now time.Time) {
	for namespace, limiter := range m.limiters {
		if limiter.TokensAt(now) >= missesBurst {
			delete(m.limiters, namespace)
		}
	}
}

// forget drops what is kept of a ScheduledRestart that was deleted.
func (m *missLimiter) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.turns, key)
}
