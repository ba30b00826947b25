// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Window opens at each tick of a schedule, for a duration that clock changes neither shorten
// nor extend.
type Window struct {
	Opens  *Schedule
	Length time.Duration
}

// Windows are open while any of them is open. An empty list is always open.
type Windows []Window

// When windows overlap or adjoin, at most maxJoined of them are joined, and no further than
// farAhead.
const (
	maxJoined = 100
	farAhead  = 48 * time.Hour
)

// ClosesAt returns the time until which the windows stay open; false if they are closed at the
// time at. Windows without a gap between them count as a single window, up to two days ahead.
// The zero time means that they never close.
func (w Windows) ClosesAt(at time.Time) (closes time.Time, open bool) {
	if len(w) == 0 {
		return time.Time{}, true
	}
	closes = at
	for range maxJoined {
		joined := w.lastEnd(closes)
		if !joined.After(closes) {
			break
		}
		if closes = joined; closes.Sub(at) > farAhead {
			break
		}
	}
	return closes, closes.After(at)
}

// Around returns when the window at a time opened and closes or, if none is open, the last
// window before it. Windows without a gap between them count as a single window, as for
// [Windows.ClosesAt]. It returns false if no window has opened until then.
func (w Windows) Around(at time.Time) (opened, closes time.Time, ok bool) {
	closes = w.lastEnd(at)
	if closes.IsZero() {
		return time.Time{}, time.Time{}, false
	}
	opened = closes
	if closes.After(at) {
		closes, _ = w.ClosesAt(at)
		opened = at.Add(1) // The window may have opened at exactly that time.
	}
	from := opened
	for range maxJoined {
		before := w.opensBefore(opened)
		if !before.Before(opened) {
			break
		}
		if opened = before; from.Sub(opened) > farAhead {
			break
		}
	}
	return opened, closes, true
}

// opensBefore returns, for the windows that are open just before until, the earliest of their
// last openings; until itself if there is none.
func (w Windows) opensBefore(until time.Time) time.Time {
	first := until
	for i := range w {
		opens, ok := w[i].Opens.last(until.UTC().Add(-1))
		if ok && opens.Before(first) && !opens.Add(w[i].Length).Before(until) {
			first = opens
		}
	}
	return first
}

// isOpen reports whether the windows are open at a time.
func (w Windows) isOpen(at time.Time) bool { return len(w) == 0 || w.lastEnd(at).After(at) }

// OpensAt returns the first time, from a given time on, at which the windows are open; false if
// there is none.
func (w Windows) OpensAt(from time.Time) (time.Time, bool) {
	if w.isOpen(from) {
		return from, true
	}
	var first time.Time
	for i := range w {
		if opens, ok := w[i].Opens.Next(from); ok && (first.IsZero() || opens.Before(first)) {
			first = opens
		}
	}
	return first, !first.IsZero()
}

// lastEnd returns the latest end of the windows that have opened up to a time; the zero time if
// none has.
func (w Windows) lastEnd(at time.Time) (end time.Time) {
	for i := range w {
		opened, ok := w[i].Opens.last(at.UTC())
		if closes := opened.Add(w[i].Length); ok && closes.After(end) {
			end = closes
		}
	}
	return end
}
