// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"time"

	"golang.org/x/time/rate"
)

// Limits bound the number of API requests that the users of a namespace can cause.
type Limits struct {
	// PerSecond is the average number of API requests that a namespace may send per second. Burst
	// is the maximum number of unused requests that a namespace can accumulate.
	PerSecond float64
	Burst     int
}

// Use is the amount of the manager's shared resources that a namespace has used.
type Use struct {
	// Requests is the number of requests that were sent to the API server.
	Requests float64
	// WorkerSeconds is the time that workers have spent on reconciling objects of the namespace, in
	// seconds.
	WorkerSeconds float64
	// Deferred is the number of reconciles that were deferred because the namespace had exhausted
	// its API request limit.
	Deferred float64
}

// account tracks the API request limit and the recent resource use of a namespace.
type account struct {
	requests *rate.Limiter
	recent   window
	// told is the time of the last event that reported that the namespace had exhausted its API
	// request limit.
	told time.Time
}

func newAccount(l Limits) *account {
	return &account{requests: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst)}
}

// charge counts an API request that was sent. The number of requests that the namespace may still
// send can become negative, because a running reconcile is not interrupted.
func (a *account) charge(now time.Time) {
	a.requests.ReserveN(now, 1)
	a.recent.at(now).Requests++
}

// wait returns the time until the namespace may begin another reconcile. It is 0 if the namespace
// may begin a reconcile now.
func (a *account) wait(now time.Time) time.Duration {
	missing := 1 - a.requests.TokensAt(now)
	if missing < rounding {
		return 0
	}
	return time.Duration(missing/float64(a.requests.Limit())*float64(time.Second)) + 1
}

// rounding is the fraction of a request that may be missing when a reconcile begins. After the time
// for a complete request has passed, floating point errors can leave the number of available
// requests slightly below 1.
const rounding = 1e-6

// toldFor is the minimum time between two events that report that a namespace has exhausted its API
// request limit.
const toldFor = 10 * time.Minute

// isTold reports whether an event was recorded within the last toldFor because the namespace had
// exhausted its API request limit.
func (a *account) isTold(now time.Time) bool {
	return !a.told.IsZero() && !now.Before(a.told) && now.Sub(a.told) < toldFor
}

// isIdle reports whether the account can be dropped without losing information: the namespace's
// quota of API requests is fully replenished, the namespace has not used any resources recently
// (within windowMinutes), and there is no recent event about its exhausted quota (within toldFor).
func (a *account) isIdle(now time.Time) bool {
	return a.requests.TokensAt(now) >= float64(a.requests.Burst()) && a.recent.sum(now) == Use{} && !a.isTold(now)
}

// windowMinutes is the number of minutes that the usage metrics cover, including the current,
// incomplete minute.
const windowMinutes = 5

// window is a ring buffer that records a namespace's resource use in each of the last windowMinutes
// minutes.
type window struct {
	minutes [windowMinutes]Use
	// last is the latest minute in the window, as minutes since 1970.
	last int64
}

// at returns a pointer to the use in the minute of the given time, for the caller to update.
func (w *window) at(now time.Time) *Use {
	minute := now.Unix() / 60
	if minute < w.last-1 {
		*w = window{last: minute} // The clock was set back.
	}
	for w.last < minute {
		// After a pause that is longer than the window, only the window's own minutes need to be
		// cleared.
		w.last = max(w.last+1, minute-windowMinutes+1)
		w.minutes[w.last%windowMinutes] = Use{}
	}
	return &w.minutes[w.last%windowMinutes]
}

// sum returns the total resource use in the last windowMinutes minutes.
func (w *window) sum(now time.Time) Use {
	w.at(now)
	var sum Use
	for _, u := range w.minutes {
		sum.Requests += u.Requests
		sum.WorkerSeconds += u.WorkerSeconds
		sum.Deferred += u.Deferred
	}
	return sum
}
