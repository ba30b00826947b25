// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"
)

const (
	// inRow is how many tries of a write, all refused and without waits that grow, are a loop.
	inRow = 60
	// slower is how many times longer than the tries themselves a wait is between two of them: all
	// that a client without waits does takes about as long as its tries, on any machine.
	slower = 8
	// shortest is the shortest wait: what is done 20 times a second, or more often, has none.
	shortest = time.Second / 20
	// MostHeld is how long events are held back at most to see whether waits grow. A client whose
	// waits grow to a second does not come to a row in that time.
	MostHeld = time.Minute
	// answered is the time after its last try without another for which a client may still try again.
	answered = 3 * time.Second
)

// row is a write that was refused again and again, and not done in between.
type row struct {
	call Call
	// tries are the last ones, no more than make a loop.
	tries []*Request
}

// add adds a try.
func (w *row) add(r *Request) {
	w.tries = append(w.tries, r)
	w.tries = w.tries[max(0, len(w.tries)-inRow):]
}

// ended is when a request was answered.
func (r *Request) ended() time.Time {
	return r.Time.Add(time.Duration(r.Seconds * float64(time.Second)))
}

// limit is what the longest waits of a client that has none do not exceed.
func (w *row) limit() time.Duration {
	var took []time.Duration
	for _, r := range w.tries {
		took = append(took, r.ended().Sub(r.Time))
	}
	return max(shortest, slower*longest(took))
}

// grows reports whether the longest waits between the tries are far longer than the tries, as the API
// server saw both.
func (w *row) grows() bool {
	var waits []time.Duration
	for i, r := range w.tries[1:] {
		waits = append(waits, r.Time.Sub(w.tries[i].ended()))
	}
	return len(waits) > 0 && longest(waits) > w.limit()
}

// longest is the longest of some times, without a twentieth of them: a machine that is busy holds any
// client up at times.
func longest(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)-1-len(all)/20]
}

// rows go through requests in their order, call each with every row after each of its tries, and
// return those that nothing has ended.
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

// RefusedFast returns the kinds of writes that were refused again and again, without waiting
// ever longer.
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

// Undecided reports whether more tries have to come until it is known whether a write is in a loop. If
// none comes for long, it is not.
func Undecided(requests []Request, locks map[string]bool, now time.Time) bool {
	for _, w := range rows(requests, locks, func(*row) {}) {
		last := w.tries[len(w.tries)-1].ended()
		if len(w.tries) > 1 && len(w.tries) < inRow && !w.grows() && now.Sub(last) < max(answered, w.limit()) {
			return true
		}
	}
	return false
}
