// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Moment says when something is, as people do, on the clock of a place. It names
// the zone only if that is another than now's, as before a change of the clock:
// the header of a table names now's.
func Moment(t, now time.Time, in *time.Location) string {
	t, now = t.In(in), now.In(in)
	clock := Clock(t, now, in)
	switch days := DaysBetween(now, t); {
	case days == 0:
		return "today " + clock
	case days == 1:
		return "tomorrow " + clock
	case days == -1:
		return "yesterday " + clock
	case days > 1 && days < 7:
		return t.Format("Mon ") + clock
	case t.Year() == now.Year():
		return t.Format("Mon 2 Jan ") + clock
	default:
		return t.Format("Mon 2 Jan 2006 ") + clock
	}
}

// Clock is the time of day, with its zone if that is another than now's.
func Clock(t, now time.Time, in *time.Location) string {
	clock := t.In(in).Format("15:04")
	if zone := Zone(t, in); zone != Zone(now, in) {
		clock += " " + zone
	}
	return clock
}

// Zone is the abbreviation of the zone that a clock shows at a time.
func Zone(t time.Time, in *time.Location) string { return t.In(in).Format("MST") }

// DaysBetween counts midnights on the calendar, which a change of the clock
// does not move.
func DaysBetween(from, to time.Time) int {
	date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(date(to).Sub(date(from)) / (24 * time.Hour))
}

// Coming says when something will be, or that it is due.
func Coming(t, now time.Time, in *time.Location) string {
	if !t.After(now) {
		return "due since " + Moment(t, now, in)
	}
	return fmt.Sprintf("%s (in %s)", Moment(t, now, in), until(t.Sub(now)))
}

// ComingInZone is Coming where no header names the zone.
func ComingInZone(t, now time.Time, in *time.Location) string {
	text := Coming(t, now, in)
	if zone := Zone(t, in); zone == Zone(now, in) && t.After(now) {
		text = fmt.Sprintf("%s %s (in %s)", Moment(t, now, in), zone, until(t.Sub(now)))
	}
	return text
}

// Ago says how long ago something was.
func Ago(t, now time.Time) string { return Between(t, now) }

// Between returns the time from a start to an end.
func Between(from, to time.Time) string { return duration.HumanDuration(max(0, to.Sub(from))) }

// Plural puts a number before a noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// until says how long it is until something, to the nearest of the units that are shown: who has
// typed 6d reads 6d, and not 5d23h.
func until(d time.Duration) string {
	unit := 24 * time.Hour
	switch {
	case d < 10*time.Minute:
		unit = time.Second
	case d < 8*time.Hour:
		unit = time.Minute
	case d < 8*24*time.Hour:
		unit = time.Hour
	}
	return duration.HumanDuration(d.Round(unit))
}
