// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"
)

const (
	// inRow is the number of consecutive failed attempts of a write that count as a hot loop (a
	// loop without back-off), unless the waits between the attempts grow.
	inRow = 60
	// slower is the minimum ratio between a wait that counts as back-off and the duration of an
	// attempt. The ratio does not depend on the machine: without back-off, a client pauses for
	// about as long as an attempt takes.
	slower = 8
	// shortest is the shortest wait between two attempts that counts as back-off. A client that
	// writes 20 times a second has no back-off.
	shortest = time.Second / 20
	// MostHeld is the maximum time for which events are held back to find out whether the waits
	// between attempts of a rejected write grow. In that time, a client whose back-off reaches a
	// second makes fewer than inRow attempts.
	MostHeld = time.Minute
	// answered is the minimum time to wait for another attempt after a failed attempt. A client
	// that sends no other attempt in this time is not in a hot loop (a loop without back-off).
	answered = 3 * time.Second
)

// row is a write whose most recent attempts have all failed.
type row struct {
	call Call
	// tries lists the most recent attempts, at most inRow.
	tries []*Request
}

// add appends a failed attempt.
func (w *row) add(r *Request) {
	w.tries = append(w.tries, r)
	w.tries = w.tries[max(0, len(w.tries)-inRow):]
}

// Ended returns the time at which the request was answered, or ended without a response.
func (r *Request) Ended() time.Time {
	return r.Time.Add(time.Duration(r.Seconds * float64(time.Second)))
}

// limit returns the duration that a wait between two attempts of the write must exceed to count as
// back-off.
func (w *row) limit() time.Duration {
	var took []time.Duration
	for _, r := range w.tries {
		took = append(took, r.Ended().Sub(r.Time))
	}
	return max(shortest, slower*longest(took))
}

// grows reports whether the client backs off, because the longest wait between two attempts exceeds
// the limit. A wait begins when the proxy has answered an attempt.
func (w *row) grows() bool {
	var waits []time.Duration
	for i, r := range w.tries[1:] {
		waits = append(waits, r.Time.Sub(w.tries[i].Ended()))
	}
	return len(waits) > 0 && longest(waits) > w.limit()
}

// longest returns the longest duration after the longest twentieth has been dropped, because a busy
// machine occasionally delays any client. The list must not be empty.
func longest(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)-1-len(all)/20]
}

// rows iterates over requests in order, and calls `each` after each failed attempt of a write. It
// returns the writes whose last attempt failed. `locks` is the set of keys of objects used for
// leader election, which are ignored.
func rows(requests []Request, locks map[string]bool, each func(*row)) map[Call]*row {
	all := map[Call]*row{}
	for i := range requests {
		r := &requests[i]
		if !r.Writes(locks) {
			continue
		}
		call := Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
		if r.Succeeded() {
			delete(all, call)
			continue
		}
		if all[call] == nil {
			all[call] = &row{call: call}
		}
		all[call].add(r)
		each(all[call])
	}
	return all
}

// RefusedFast returns a line for each rejected write that the operator retried many times without a
// growing back-off. `locks` is the set of keys of objects used for leader election, which are
// ignored.
func RefusedFast(requests []Request, locks map[string]bool) []string {
	told := map[Call]bool{}
	var lines []string
	rows(requests, locks, func(w *row) {
		if !told[w.call] && len(w.tries) == inRow && !w.grows() {
			told[w.call] = true
			lines = append(lines, fmt.Sprintf("%s: refused %d times in a row: it does not wait ever longer before it tries again", w.call, inRow))
		}
	})
	return lines
}

// Undecided reports whether more attempts are needed to find out whether the operator retries a
// write in a hot loop (without back-off). A write whose last attempt failed some seconds ago is not
// in a hot loop. `locks` is the set of keys of objects used for leader election, which are ignored.
func Undecided(requests []Request, locks map[string]bool, now time.Time) bool {
	for _, w := range rows(requests, locks, func(*row) {}) {
		last := w.tries[len(w.tries)-1].Ended()
		if len(w.tries) > 1 && len(w.tries) < inRow && !w.grows() && now.Sub(last) < max(answered, w.limit()) {
			return true
		}
	}
	return false
}
