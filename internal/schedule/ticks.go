// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Ticks are the ticks of a schedule for which a window is open at some time from when they
// are due until their deadline. The others do not count.
type Ticks struct {
	// Schedule is nil if there are no ticks.
	Schedule *Schedule
	Windows  Windows
	// Offset is the time from a tick until it is due, and Deadline the time from then until
	// its deadline.
	Offset, Deadline time.Duration
}

// maxClosed is after how many windows without a tick a search ends: more than a year of
// daily ones.
const maxClosed = 400

// Next returns the first tick strictly after a time, in UTC, and false if there is none as far as
// [Ticks.Search] looks.
func (t Ticks) Next(after time.Time) (time.Time, bool) {
	tick, _, ok := t.Search(after)
	return tick, ok
}

// Search returns the first tick strictly after a time, in UTC. If it finds none it returns false,
// and until when there is none: a search ends after some hundred windows, and another one may
// begin there. The zero time means that there never is one.
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
		// The first tick that waits until then, and not one before it.
		after = opens.Add(-t.Deadline - t.Offset - 1)
	}
	return time.Time{}, after.UTC(), false
}

// Latest returns the latest tick that is after one time and not after the other, in UTC, and
// how many ticks are between after and that tick, up to [MaxMissed]; false if there is no tick.
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

// LeftOut returns the tick of the schedule before a tick, if it does not count.
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
		// No window opens until the deadline, and so not until that of a tick before it: the
		// next one that counts is due before a window has closed.
		upTo = closed.Add(-t.Offset - 1)
	}
	return time.Time{}, false
}

// reaches reports whether a tick may be started at a time at which a window is open.
func (t Ticks) reaches(tick, open time.Time) bool {
	return !open.After(tick.Add(t.Offset + t.Deadline))
}
