// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Moment describes a time in a time zone, relative to now: "today 03:00", for example. It includes the name
// of the zone only if that differs from now's, as across a change of daylight saving time: the header of a
// table has the zone of now.
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

// Clock returns the time of day, with its zone if that differs from now's.
func Clock(t, now time.Time, in *time.Location) string {
	clock := t.In(in).Format("15:04")
	if zone := Zone(t, in); zone != Zone(now, in) {
		clock += " " + zone
	}
	return clock
}

// Zone returns the abbreviation of a zone at a time.
func Zone(t time.Time, in *time.Location) string { return t.In(in).Format("MST") }

// DaysBetween returns the number of midnights between two times, which changes of daylight saving time do not
// affect.
func DaysBetween(from, to time.Time) int {
	date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(date(to).Sub(date(from)) / (24 * time.Hour))
}

// Coming describes a future time, or says that it is due.
func Coming(t, now time.Time, in *time.Location) string {
	if !t.After(now) {
		return "due since " + Moment(t, now, in)
	}
	return fmt.Sprintf("%s (in %s)", Moment(t, now, in), until(t.Sub(now)))
}

// ComingInZone is [Coming] with the zone, for texts without a header that names it.
func ComingInZone(t, now time.Time, in *time.Location) string {
	text := Coming(t, now, in)
	if zone := Zone(t, in); zone == Zone(now, in) && t.After(now) {
		text = fmt.Sprintf("%s %s (in %s)", Moment(t, now, in), zone, until(t.Sub(now)))
	}
	return text
}

// Ago returns the time since t as text.
func Ago(t, now time.Time) string { return Between(t, now) }

// Between returns the time from a start to an end as text.
func Between(from, to time.Time) string { return duration.HumanDuration(max(0, to.Sub(from))) }

// Plural returns a number with a noun in the singular or plural.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// until returns a duration as text, rounded to the nearest displayed unit: a user who typed 6d reads 6d, and
// not 5d23h.
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
