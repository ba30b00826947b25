// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// MaxMissed is how far [Schedule.Latest] counts.
const MaxMissed = 1000

var epoch = time.Unix(0, 0).UTC()

// Schedule is the ticks of a cron expression in a time zone. It does not change
// and may be used from several goroutines. [Parse] makes one.
type Schedule struct {
	expression string
	location   *time.Location
	calendar   *cron.SpecSchedule // wall times, told as if they were UTC
	times      fieldValues
	everyHour  bool
}

// Parse reads a cron expression and the name of a time zone.
//
// The expression has the five fields minute, hour, day of month, month and day
// of week, or is one of @yearly, @annually, @monthly, @weekly, @daily, @midnight
// and @hourly. A field is a list of values, ranges and steps, as in crontab(5);
// months and days of the week have names too, and Sunday is 0 or 7. If both day
// fields are restricted, a day that matches one of them is enough. The zone is a
// name from the IANA database, such as Europe/Berlin; "" is UTC.
//
// All else is refused, and so is a date that never happens, such as 30 February.
// The error says in one line what is wrong and what to write instead.
func Parse(expression, zone string) (*Schedule, error) {
	calendar, times, err := parseExpression(expression)
	if err != nil {
		return nil, fmt.Errorf("schedule %.64q: %w", expression, err)
	}
	location, err := loadZone(zone)
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

// Zone returns the name of the time zone, and "UTC" if none was given.
func (s *Schedule) Zone() string { return s.location.String() }

// Location returns the time zone.
func (s *Schedule) Location() *time.Location { return s.location }

// String returns the expression and the zone.
func (s *Schedule) String() string { return s.expression + " " + s.Zone() }

// Next returns the first tick strictly after a time, in UTC, and false if there
// is none. A schedule that Parse returned has always one.
//
// A schedule that names every hour of the day is an interval: it ticks whenever
// the zone's clock shows one of its times. Where the clock is put back it goes on
// ticking through the repeated hour, and where it is put forward the times that
// are left out are not made up for: the clock's next one comes as soon as ever.
//
// Every other schedule has fixed times, each of which ticks once: at the first
// instant at which the zone's clock shows that time or a later one. So a time in
// the spring gap ticks at the gap's end, together with all others there, and a
// time in the autumn overlap ticks in the first pass only.
//
// The two are Vixie cron's (crontab(5), cron(8)), with the difference that there
// a * in the minute is enough, or a * with a step, to be an interval.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	after = after.UTC() // and without the monotonic clock, which must not get into a tick
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
		from = at.end.Add(-1) // so that a tick at the very start of the next stretch counts
	}
}

// Latest returns the latest tick after the one time and not after the other, in
// UTC, and how many ticks lie between after and that tick: those that it makes
// up for. It returns false if there is no tick.
//
// The work is bounded however long ago after is: the tick is looked for
// backwards from upTo, and the missed ones are counted to [MaxMissed]. That
// number means "that many or more".
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

// last returns the latest tick not after upTo.
func (s *Schedule) last(upTo time.Time) (time.Time, bool) {
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

// previous returns the latest wall time in the calendar that is not after the
// given one. cron.Prev begins with the second before the one it is given.
func (s *Schedule) previous(wall time.Time) time.Time {
	return s.calendar.Prev(wall.Add(time.Second))
}
