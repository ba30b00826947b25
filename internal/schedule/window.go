// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Window is a recurring period in which actions such as restarts may start. It opens at each time
// in a schedule, and closes after a fixed duration, even if the zone's clock changes in between.
type Window struct {
	Opens  *Schedule
	Length time.Duration
}

// Windows is a list of windows. It is open while any of its windows is open. An empty list is
// always open.
type Windows []Window

// Limits for joining overlapping or adjoining windows: at most maxJoined windows are joined, until
// together they are longer than farAhead.
const (
	maxJoined = 100
	farAhead  = 48 * time.Hour
)

// ClosesAt returns the time until which the windows stay open; false if they are closed at the
// given time. Windows without a gap between them count as a single window, up to two days ahead. A
// zero time means that the windows never close.
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

// Around returns the opening and closing times of the window that is open at the given time. If no
// window is open, it returns the times of the previous window. Windows without a gap between them
// count as a single window, as for [Windows.ClosesAt]. It returns false if no window has ever
// opened before.
func (w Windows) Around(at time.Time) (opened, closes time.Time, ok bool) {
	closes = w.lastEnd(at)
	if closes.IsZero() {
		return time.Time{}, time.Time{}, false
	}
	opened = closes
	if closes.After(at) {
		closes, _ = w.ClosesAt(at)
		opened = at.Add(1) // A window that opened at exactly this time must be included.
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

// opensBefore returns the earliest opening time of the windows that are open just before the time
// until; until itself if none is open.
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

// isOpen reports whether any window is open at the given time.
func (w Windows) isOpen(at time.Time) bool { return len(w) == 0 || w.lastEnd(at).After(at) }

// OpensAt returns the first time at or after "from" at which the windows are open; false if there
// is none.
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

// lastEnd returns the latest closing time of the windows that have opened at or before the given
// time; zero if none has opened.
func (w Windows) lastEnd(at time.Time) (end time.Time) {
	for i := range w {
		opened, ok := w[i].Opens.last(at.UTC())
		if closes := opened.Add(w[i].Length); ok && closes.After(end) {
			end = closes
		}
	}
	return end
}
