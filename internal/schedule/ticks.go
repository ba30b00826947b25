// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Ticks are the ticks of a schedule that count: a window is open at some time between their due
// time and their deadline. The other ticks of the schedule do not count.
type Ticks struct {
	// Schedule is nil if there are no ticks.
	Schedule *Schedule
	Windows  Windows
	// Offset is the time from a tick until it is due, and Deadline the time from then until its
	// deadline.
	Offset, Deadline time.Duration
}

// maxClosed is the number of windows without a tick after which a search ends: more than a year
// of daily windows.
const maxClosed = 400

// Next returns the first tick strictly after a time, in UTC; false if [Ticks.Search] finds
// none.
func (t Ticks) Next(after time.Time) (time.Time, bool) {
	tick, _, ok := t.Search(after)
	return tick, ok
}

// Search returns the first tick strictly after a time, in UTC. If it finds none, it returns
// false and the time up to which there is none: a search ends after some hundred windows, and
// can be continued there. The zero time means that there will never be a tick.
func (t Ticks) Search(after time.Time) (tick, until time.Time, ok bool) {
	if t.Schedule == nil {
		return time.Time{}, time.Time{}, false
	}
	for range maxClosed {
		tick, ok := t.Schedule.Next(after)
		if !ok {
			return time.Time{}, time.Time{}, false
		}
		opens, ok := t.Windows.OpensAt(tick.Add(t.Offset))
		switch {
		case !ok:
			return time.Time{}, time.Time{}, false
		case t.reaches(tick, opens):
			return tick, time.Time{}, true
		}
		// Continue with the first tick whose deadline is not before the window opens.
		after = opens.Add(-t.Deadline - t.Offset - 1)
	}
	return time.Time{}, after.UTC(), false
}

// Latest returns the latest tick after a time and not after upTo, in UTC, and the number of
// ticks between after and that tick, up to [MaxMissed]; false if there is no tick.
func (t Ticks) Latest(after, upTo time.Time) (tick time.Time, missed int, ok bool) {
	if t.Schedule == nil {
		return time.Time{}, 0, false
	}
	if len(t.Windows) == 0 {
		return t.Schedule.Latest(after, upTo)
	}
	tick, ok = t.last(upTo.UTC())
	if !ok || !tick.After(after) {
		return time.Time{}, 0, false
	}
	for missed < MaxMissed {
		next, ok := t.Next(after)
		if !ok || !next.Before(tick) {
			break
		}
		after = next
		missed++
	}
	return tick, missed, true
}

// LeftOut returns the tick of the schedule before the given tick, if no window is open for it.
func (t Ticks) LeftOut(before time.Time) (time.Time, bool) {
	if len(t.Windows) == 0 {
		return time.Time{}, false
	}
	tick, ok := t.Schedule.last(before.UTC().Add(-1))
	if !ok {
		return time.Time{}, false
	}
	opens, ok := t.Windows.OpensAt(tick.Add(t.Offset))
	return tick, !ok || !t.reaches(tick, opens)
}

// last returns the latest tick not after upTo.
func (t Ticks) last(upTo time.Time) (time.Time, bool) {
	for range maxClosed {
		tick, ok := t.Schedule.last(upTo)
		if !ok {
			return time.Time{}, false
		}
		due := tick.Add(t.Offset)
		if opens, ok := t.Windows.OpensAt(due); ok && t.reaches(tick, opens) {
			return tick, true
		}
		closed := t.Windows.lastEnd(due)
		if closed.IsZero() {
			return time.Time{}, false
		}
		// No window opens before the deadline of this tick, nor of any tick since the last
		// window closed: continue with ticks that were due before that.
		upTo = closed.Add(-t.Offset - 1)
	}
	return time.Time{}, false
}

// reaches reports whether a tick may still be started at the time at which a window opens.
func (t Ticks) reaches(tick, open time.Time) bool {
	return !open.After(tick.Add(t.Offset + t.Deadline))
}
