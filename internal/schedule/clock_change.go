// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/internal/text"
)

// ClockChange describes the effect of a clock change in the zone on a tick (scheduled time), given
// the previous tick. There are three effects: the tick was moved out of a gap, its local time
// occurs twice, or it is the first tick after the clock change. ClockChange returns "" if there is
// no effect.
func (s *Schedule) ClockChange(tick, previous time.Time) string {
	here := stretchNear(s.location, tick)
	local := tick.In(s.location)
	if !here.start.IsZero() {
		switch shift := here.offset - stretchAt(s.location, here.start.Add(-1)).offset; {
		case shift > 0 && tick.Equal(here.start) && !s.times.contain(local):
			end := tick.UTC().Add(here.offset) // the end of the gap as a wall clock time
			return fmt.Sprintf("%s to %s do not exist: runs at their end", end.Add(-shift).Format("15:04"), end.Add(-time.Minute).Format("15:04"))
		case shift < 0 && tick.Before(here.start.Add(-shift)):
			return local.Format("15:04") + " for the second time: the clock was put back"
		case previous.Before(here.start) && shift != 0:
			how := "forward"
			if shift < 0 {
				how, shift = "back", -shift
			}
			return fmt.Sprintf("the clock was put %s by %s on %s", how, text.Duration(shift), here.start.Add(-1).In(s.location).Format("2 Jan"))
		}
	}
	if !here.end.IsZero() {
		if shift := stretchAt(s.location, here.end).offset - here.offset; shift < 0 && !tick.Before(here.end.Add(shift)) {
			return local.Format("15:04") + " for the first time of two"
		}
	}
	return ""
}

// contain reports whether the values of the five cron fields match the given wall clock time.
func (t *fieldValues) contain(wall time.Time) bool {
	has := func(field, value int) bool { return slices.Contains(t[field].list(fields[field]), value) }
	if !has(minuteField, wall.Minute()) || !has(hourField, wall.Hour()) || !has(monthField, int(wall.Month())) {
		return false
	}
	day, weekday := has(dayField, wall.Day()), has(weekdayField, int(wall.Weekday()))
	if t[dayField].star || t[weekdayField].star {
		return day && weekday
	}
	return day || weekday
}

// stretchNear returns the period around t in which the zone's offset from UTC does not change. It
// is like [stretchAt], but omits a start or an end at which the offset stays the same. For some
// zones, Go reports such a boundary every year. stretchNear also omits an end in the distant
// future.
func stretchNear(location *time.Location, t time.Time) stretch {
	at := stretchAt(location, t)
	if !at.start.IsZero() && stretchAt(location, at.start.Add(-1)).offset == at.offset {
		at.start = time.Time{}
	}
	if at.end.After(t.Add(2*maxShift)) || !at.end.IsZero() && stretchAt(location, at.end).offset == at.offset {
		at.end = time.Time{}
	}
	return at
}

// FirstInstant returns the first instant at which the zone's clock shows the date and time of wall.
// If the clock skips that time, it returns the end of the gap. The location of wall is ignored.
func FirstInstant(location *time.Location, wall time.Time) time.Time {
	year, month, day := wall.Date()
	hour, minute, second := wall.Clock()
	return reached(location, time.Date(year, month, day, hour, minute, second, wall.Nanosecond(), time.UTC))
}
