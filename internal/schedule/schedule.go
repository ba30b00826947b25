// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/netresearch/go-cron"
)

// MaxMissed is the number of missed ticks (scheduled times) at which [Schedule.Latest] stops
// counting.
const MaxMissed = 1000

var epoch = time.Unix(0, 0).UTC()

// Schedule is a cron expression in a time zone. It never changes, and is safe for concurrent
// use. Create it with [Parse].
type Schedule struct {
	expression string
	location   *time.Location
	calendar   *cron.SpecSchedule // matches wall clock times, represented as if they were UTC
	times      fieldValues
	everyHour  bool
	// recent is the period without ticks that the last search found; nil until the first search.
	recent atomic.Pointer[gap]
}

// Parse parses a cron expression and the name of a time zone.
//
// The expression has the five fields minute, hour, day of month, month and day of week, or is one
// of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly. A field is a list of
// values, ranges and steps, as in crontab(5); months and days of the week can also be given by
// name, and Sunday is 0 or 7. If both day fields are restricted, a day needs to match only one of
// them. The zone is a name from the IANA database, such as Europe/Berlin; "" is UTC.
//
// Parse rejects all other expressions, including dates that never happen, such as 30 February. The
// error describes the invalid part and how to correct it in one line.
func Parse(expression, zone string) (*Schedule, error) {
	calendar, times, err := parseExpression(expression)
	if err != nil {
		return nil, fmt.Errorf("schedule %.64q: %w", expression, err)
	}
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	return &Schedule{
		expression: strings.Join(strings.Fields(expression), " "),
		location:   location,
		calendar:   calendar,
		times:      times,
		everyHour:  times[hourField].full(fields[hourField]),
	}, nil
}

// Zone returns the name of the schedule's time zone, which is "UTC" by default.
func (s *Schedule) Zone() string { return s.location.String() }

// Location returns the schedule's time zone.
func (s *Schedule) Location() *time.Location { return s.location }

// String returns the expression and the zone, separated by a space.
func (s *Schedule) String() string { return s.expression + " " + s.Zone() }

// findNext searches for the first tick strictly after the given time, which must be in UTC.
func (s *Schedule) findNext(after time.Time) (time.Time, bool) {
	if !s.everyHour {
		wall := s.calendar.Next(shown(s.location, after))
		if wall.IsZero() {
			return time.Time{}, false
		}
		return reached(s.location, wall), true
	}
	from := after
	for at := stretchAt(s.location, after); ; at = stretchAt(s.location, at.end) {
		wall := s.calendar.Next(from.Add(at.offset))
		if wall.IsZero() {
			return time.Time{}, false
		}
		if tick := wall.Add(-at.offset); at.end.IsZero() || tick.Before(at.end) {
			return tick, true
		}
		from = at.end.Add(-1) // The search must also find a tick at the start of the next stretch.
	}
}

// Latest returns the latest tick, in UTC, that is later than "after", and at or before upTo. It
// also returns the number of ticks between "after" and that tick, which count as missed. It returns
// false if there is no such tick.
//
// The cost is bounded, regardless of the length of the period: the search goes backwards from upTo,
// and missed ticks are counted up to [MaxMissed]. A result of MaxMissed means that at least that
// many ticks were missed.
func (s *Schedule) Latest(after, upTo time.Time) (tick time.Time, missed int, ok bool) {
	tick, ok = s.last(upTo.UTC())
	if !ok || !tick.After(after) {
		return time.Time{}, 0, false
	}
	for missed < MaxMissed {
		next, ok := s.Next(after)
		if !ok || !next.Before(tick) {
			break
		}
		after = next
		missed++
	}
	return tick, missed, true
}

// findLast searches for the latest tick at or before upTo, which must be in UTC.
func (s *Schedule) findLast(upTo time.Time) (time.Time, bool) {
	if !s.everyHour {
		wall := s.previous(shown(s.location, upTo))
		if wall.IsZero() {
			return time.Time{}, false
		}
		return reached(s.location, wall), true
	}
	until := upTo
	for at := stretchAt(s.location, upTo); ; at = stretchAt(s.location, until) {
		wall := s.previous(until.Add(at.offset))
		if wall.IsZero() {
			return time.Time{}, false
		}
		if tick := wall.Add(-at.offset); at.start.IsZero() || !tick.Before(at.start) {
			return tick, true
		}
		until = at.start.Add(-1)
	}
}

// previous returns the latest matching wall clock time at or before wall. go-cron's Prev begins its
// search one second before its argument, so the argument is one second after wall.
func (s *Schedule) previous(wall time.Time) time.Time {
	return s.calendar.Prev(wall.Add(time.Second))
}
