// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// gap is a period without ticks (scheduled times) between the times from and to. A schedule caches
// the last gap that it found, because the same times are looked up repeatedly while a tick is due.
// A search is the most expensive part of a decision about a restart.
type gap struct {
	from, to time.Time
	// fromTick is true if there is a tick at the beginning of the period. toTick is true if there
	// is a tick at its end.
	fromTick, toTick bool
}

func (g *gap) contains(t time.Time) bool { return g != nil && !t.Before(g.from) && t.Before(g.to) }

// Next returns the first tick strictly after the given time, in UTC; false if there is none. A
// schedule that Parse returned always has a next tick.
//
// A schedule that matches every hour of the day is an interval: it ticks whenever the zone's clock
// shows a matching time. When the clock is put back, it keeps ticking through the repeated hour.
// When the clock is put forward, the skipped times are lost: the next tick is the next matching
// time that the clock shows.
//
// Every other schedule has fixed times. Each of them ticks once, at the first instant at which the
// zone's clock shows that time or a later time. A time in the spring gap therefore ticks at the end
// of the gap, together with all other times in the gap, and a time in the autumn overlap ticks in
// the first pass only.
//
// Vixie cron makes the same distinction (crontab(5), cron(8)), but its schedule already counts as
// an interval if the minute field is a *, with or without a step.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	after = after.UTC() // UTC also drops the monotonic clock reading, which a tick must not have.
	known := s.recent.Load()
	if known.contains(after) && known.toTick {
		return known.to, true
	}
	next, ok := s.findNext(after)
	if !ok {
		return time.Time{}, false
	}
	found := &gap{from: after, to: next, toTick: true}
	switch {
	case known.contains(after):
		found.from, found.fromTick = known.from, known.fromTick
	case known != nil && known.toTick && known.to.Equal(after):
		found.fromTick = true
	}
	s.recent.Store(found)
	return next, true
}

// last returns the latest tick at or before upTo, which must be in UTC.
func (s *Schedule) last(upTo time.Time) (time.Time, bool) {
	known := s.recent.Load()
	if known.contains(upTo) && known.fromTick {
		return known.from, true
	}
	if known != nil && known.toTick && !upTo.Before(known.to) {
		// In the usual case, the tick at the end of the cached period has just become due, and is
		// the latest tick.
		if next, ok := s.findNext(known.to); ok && upTo.Before(next) {
			s.recent.Store(&gap{from: known.to, to: next, fromTick: true, toTick: true})
			return known.to, true
		}
	}
	last, ok := s.findLast(upTo)
	if !ok {
		return time.Time{}, false
	}
	found := &gap{from: last, to: upTo.Add(1), fromTick: true}
	if known.contains(upTo) {
		found.to, found.toTick = known.to, known.toTick
	}
	s.recent.Store(found)
	return last, true
}
