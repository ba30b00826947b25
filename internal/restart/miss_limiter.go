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

// Limits for the reports of a namespace's missed and skipped ticks (scheduled times of restarts).
// Each report costs a status write and an event, and users who may create ScheduledRestarts control
// how often ticks are missed. When the limit is exceeded, ticks are reported later, several at a
// time.
const (
	missesPerSecond = 5
	missesBurst     = 100
)

// missLimiter limits the rate at which each namespace's missed and skipped restarts are reported.
type missLimiter struct {
	memories *memories

	mu sync.Mutex
	// limiters maps each namespace to its rate limiter.
	limiters map[string]*rate.Limiter
}

func newMissLimiter(memories *memories) *missLimiter {
	return &missLimiter{memories: memories, limiters: map[string]*rate.Limiter{}}
}

// turn returns the time at which a decision may be carried out; zero if it may be carried out now.
// Only decisions that merely report missed or skipped ticks have to wait.
func (l *missLimiter) turn(key types.NamespacedName, d *decision.Output, now time.Time) (turn time.Time) {
	limited := len(d.Records) > 0 && d.Status.Active == nil
	for i := range d.Records {
		limited = limited && d.Records[i].Trigger == tidekeeperv1.TriggerSchedule && d.Records[i].StartedTime == nil
	}
	l.memories.with(key, func(m *memory) {
		waits := !m.missTurn.IsZero()
		switch {
		case !limited || waits && !m.missTurn.After(now):
			m.missTurn = time.Time{}
		case !waits:
			if delay := l.limiter(key.Namespace, now).ReserveN(now, 1).DelayFrom(now); delay > 0 {
				m.missTurn = now.Add(delay)
			}
		}
		turn = m.missTurn
	})
	return turn
}

// limiter returns the rate limiter of a namespace, and creates it if necessary.
func (l *missLimiter) limiter(namespace string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiters[namespace]
	if limiter == nil {
		l.dropIdle(now)
		limiter = rate.NewLimiter(missesPerSecond, missesBurst)
		l.limiters[namespace] = limiter
	}
	return limiter
}

// dropIdle drops the limiters of namespaces without recent reports, so that the number of limiters
// stays bounded. The caller must hold the lock.
func (l *missLimiter) dropIdle(now time.Time) {
	for namespace, limiter := range l.limiters {
		if limiter.TokensAt(now) >= missesBurst {
			delete(l.limiters, namespace)
		}
	}
}
