// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"time"

	"golang.org/x/time/rate"
)

// Limits bound how many requests to the API server the users of one namespace can cause.
type Limits struct {
	// PerSecond is how many requests a namespace gets each second, and Burst how many of those
	// that it has not used it keeps.
	PerSecond float64
	Burst     int
}

// Use is what a namespace has used.
type Use struct {
	// Requests were sent to the API server.
	Requests float64
	// WorkerSeconds is how long workers have worked for it.
	WorkerSeconds float64
	// Deferred is how often a reconcile was put off, as the namespace had used up its requests.
	Deferred float64
}

// account is that of one namespace.
type account struct {
	requests *rate.Limiter
	recent   window
}

func newAccount(l Limits) *account {
	return &account{requests: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst)}
}

// charge takes in that a request was sent: also one that the namespace could not afford, as a
// reconcile that has begun is not interrupted.
func (a *account) charge(now time.Time) {
	a.requests.ReserveN(now, 1)
	a.recent.at(now).Requests++
}

// wait returns how long it takes until the namespace may send a request; 0 if it may now.
func (a *account) wait(now time.Time) time.Duration {
	missing := 1 - a.requests.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	// Not less than a nanosecond, by which a timer would never be done.
	return time.Duration(missing/float64(a.requests.Limit())*float64(time.Second)) + 1
}

// isIdle reports whether nothing is lost if the account is closed.
func (a *account) isIdle(now time.Time) bool {
	return a.requests.TokensAt(now) >= float64(a.requests.Burst()) && a.recent.sum(now) == Use{}
}

// windowMinutes is how many minutes the metrics look back: the current one, which has just begun,
// and those before it.
const windowMinutes = 5

// window adds up what was used in the last minutes.
type window struct {
	minutes [windowMinutes]Use
	// last is the minute that was used last, counted since 1970.
	last int64
}

// at returns what was used in the minute of a time.
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

// sum returns what was used in the last minutes.
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
