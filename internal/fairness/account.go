// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"time"

	"golang.org/x/time/rate"
)

// Limits bound the number of requests to the API server that the users of a namespace can
// cause.
type Limits struct {
	// PerSecond is the number of requests that a namespace gets each second, and Burst the
	// maximum number of unused requests that it keeps.
	PerSecond float64
	Burst     int
}

// Use is the use of shared resources by a namespace.
type Use struct {
	// Requests is the number of requests sent to the API server.
	Requests float64
	// WorkerSeconds is the time that workers have spent on the namespace, in seconds.
	WorkerSeconds float64
	// Deferred is the number of reconciles that were deferred because the namespace had used up
	// its requests.
	Deferred float64
}

// account is the account of a namespace.
type account struct {
	requests *rate.Limiter
	recent   window
	// told is the time of the last event that says that the requests are used up.
	told time.Time
}

func newAccount(l Limits) *account {
	return &account{requests: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst)}
}

// charge records a sent request, even if the namespace could not afford it, since a running
// reconcile is not interrupted.
func (a *account) charge(now time.Time) {
	a.requests.ReserveN(now, 1)
	a.recent.at(now).Requests++
}

// wait returns the time until the namespace may send a request; 0 if it may send one now.
func (a *account) wait(now time.Time) time.Duration {
	missing := 1 - a.requests.TokensAt(now)
	if missing < rounding {
		return 0
	}
	return time.Duration(missing/float64(a.requests.Limit())*float64(time.Second)) + 1
}

// rounding is the part of a token that may be missing, in floating point numbers, when the time for a
// whole token has passed.
const rounding = 1e-6

// toldFor is the time during which no second event says that a namespace has used up its requests.
const toldFor = 10 * time.Minute

// isTold reports whether there is a recent event that says that the requests are used up.
func (a *account) isTold(now time.Time) bool {
	return !a.told.IsZero() && !now.Before(a.told) && now.Sub(a.told) < toldFor
}

// isIdle reports whether the account can be closed without losing information.
func (a *account) isIdle(now time.Time) bool {
	return a.requests.TokensAt(now) >= float64(a.requests.Burst()) && a.recent.sum(now) == Use{} && !a.isTold(now)
}

// windowMinutes is the number of minutes that the metrics cover: the current minute, which has
// just begun, and the minutes before it.
const windowMinutes = 5

// window adds up the use in the last minutes.
type window struct {
	minutes [windowMinutes]Use
	// last is the minute of the last use, counted since 1970.
	last int64
}

// at returns the use in the minute of the given time, for updates.
func (w *window) at(now time.Time) *Use {
	minute := now.Unix() / 60
	if minute < w.last-1 {
		*w = window{last: minute} // The clock was set back.
	}
	for w.last < minute {
		// After a pause of many minutes, all of them are cleared.
		w.last = max(w.last+1, minute-windowMinutes+1)
		w.minutes[w.last%windowMinutes] = Use{}
	}
	return &w.minutes[w.last%windowMinutes]
}

// sum returns the use in the last minutes.
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
