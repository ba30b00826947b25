// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// Ticks computes the effective ticks of a schedule. A tick is a scheduled time of a restart. It is
// effective if a window (a period in which restarts may start) is open at some time between the
// tick's due time and its deadline.
type Ticks struct {
	// Schedule is nil if there are no ticks.
	Schedule *Schedule
	Windows  Windows
	// Offset is the time between a tick and its due time. Deadline is the time between the due time
	// and the deadline.
	Offset, Deadline time.Duration
}

// maxClosed is the maximum number of windows that a search for a tick visits before it gives up. It
// covers more than a year of daily windows.
const maxClosed = 400

// Next returns the first tick strictly after the given time, in UTC; false if [Ticks.Search] finds
// none.
func (t Ticks) Next(after time.Time) (time.Time, bool) {
	tick, _, ok := t.Search(after)
	return tick, ok
}

// Search returns the first tick strictly after the given time, in UTC. If it visits maxClosed
// windows without finding a tick, it gives up and returns false. The next search can then start
// from the returned time "until", before which there is no tick. If "until" is zero, there will
// never be a tick.
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
		// Continue with the first tick whose deadline is at or after the opening of this window.
		after = opens.Add(-t.Deadline - t.Offset - 1)
	}
	return time.Time{}, after.UTC(), false
}

// Latest returns the latest tick, in UTC, that is later than "after", and at or before upTo. It
// also returns the number of ticks between "after" and that tick, up to [MaxMissed]. It returns
// false if there is no such tick.
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

// LeftOut returns the schedule's latest tick before the given time, and true if that tick is not
// effective, because no window is open for it. Without windows or without an earlier tick, it
// returns a zero time and false.
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

// last returns the latest effective tick at or before upTo.
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
		// No window is open between the due time of this tick and its deadline. The same is true of
		// all ticks that have become due since the last window closed, so continue with ticks that
		// were due before that.
		upTo = closed.Add(-t.Offset - 1)
	}
	return time.Time{}, false
}

// reaches reports whether a restart for the tick may still start when a window opens at the time
// "open".
func (t Ticks) reaches(tick, open time.Time) bool {
	return !open.After(tick.Add(t.Offset + t.Deadline))
}
