// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"time"
)

const (
	// inRow is the number of consecutive refused tries of a write without a growing back-off that
	// count as a hot loop.
	inRow = 60
	// slower is the factor by which a wait must be longer than the tries. On any machine, the work
	// of a client between two tries takes about as long as a try.
	slower = 8
	// shortest is the shortest wait that counts as back-off: a client that writes 20 times a second
	// or more has none.
	shortest = time.Second / 20
	// MostHeld is the maximum time for which events are held back to see whether waits grow. A
	// client whose back-off reaches a second does not make inRow tries in that time.
	MostHeld = time.Minute
	// answered is the time after the last try in which a client may still try again.
	answered = 3 * time.Second
)

// row is a write that was refused in each of its last tries.
type row struct {
	call Call
	// tries are the last tries, at most inRow.
	tries []*Request
}

// add adds a try.
func (w *row) add(r *Request) {
	w.tries = append(w.tries, r)
	w.tries = w.tries[max(0, len(w.tries)-inRow):]
}

// ended returns the time at which a request was answered.
func (r *Request) ended() time.Time {
	return r.Time.Add(time.Duration(r.Seconds * float64(time.Second)))
}

// limit returns the duration that a wait must exceed to count as back-off.
func (w *row) limit() time.Duration {
	var took []time.Duration
	for _, r := range w.tries {
		took = append(took, r.ended().Sub(r.Time))
	}
	return max(shortest, slower*longest(took))
}

// grows reports whether the longest waits between tries exceed the limit, as seen by the API
// server.
func (w *row) grows() bool {
	var waits []time.Duration
	for i, r := range w.tries[1:] {
		waits = append(waits, r.Time.Sub(w.tries[i].ended()))
	}
	return len(waits) > 0 && longest(waits) > w.limit()
}

// longest returns the longest duration after leaving out the longest twentieth: a busy machine
// delays any client at times.
func longest(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)-1-len(all)/20]
}

// rows goes through requests in order and calls each after each refused try of a write. It
// returns the writes whose last try was refused.
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

// RefusedFast returns a line for each write that the operator retried in a hot loop, without a
// growing back-off.
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

// Undecided reports whether more tries must be awaited to know whether the operator retries a
// write in a hot loop. If no further try comes for some time, it does not.
func Undecided(requests []Request, locks map[string]bool, now time.Time) bool {
	for _, w := range rows(requests, locks, func(*row) {}) {
		last := w.tries[len(w.tries)-1].ended()
		if len(w.tries) > 1 && len(w.tries) < inRow && !w.grows() && now.Sub(last) < max(answered, w.limit()) {
			return true
		}
	}
	return false
}
