// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Moment formats a time relative to now, such as "today 03:00". It adds the time zone only if its
// abbreviation at t differs from the abbreviation at now, as after a daylight saving time change.
// Table headers name the current abbreviation.
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

// Clock formats the time of day. It adds the time zone only if its abbreviation at t differs from
// the abbreviation at now.
func Clock(t, now time.Time, in *time.Location) string {
	clock := t.In(in).Format("15:04")
	if zone := Zone(t, in); zone != Zone(now, in) {
		clock += " " + zone
	}
	return clock
}

// Zone returns a time zone's abbreviation at t, such as CET.
func Zone(t time.Time, in *time.Location) string { return t.In(in).Format("MST") }

// DaysBetween returns the number of midnights between two times. Unlike a number of hours, it is
// independent of daylight saving time changes.
func DaysBetween(from, to time.Time) int {
	date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(date(to).Sub(date(from)) / (24 * time.Hour))
}

// Coming formats a future time, such as "today 03:00 (in 10m)", or a past time, such as "due since
// today 03:00".
func Coming(t, now time.Time, in *time.Location) string {
	if !t.After(now) {
		return "due since " + Moment(t, now, in)
	}
	return fmt.Sprintf("%s (in %s)", Moment(t, now, in), until(t.Sub(now)))
}

// ComingInZone is like [Coming], but always adds the time zone to a future time. It is used where
// no table header names the time zone.
func ComingInZone(t, now time.Time, in *time.Location) string {
	text := Coming(t, now, in)
	if zone := Zone(t, in); zone == Zone(now, in) && t.After(now) {
		text = fmt.Sprintf("%s %s (in %s)", Moment(t, now, in), zone, until(t.Sub(now)))
	}
	return text
}

// Ago formats the time passed since t.
func Ago(t, now time.Time) string { return Between(t, now) }

// Between formats the time between two times. It is 0 if `to` is before `from`.
func Between(from, to time.Time) string { return duration.HumanDuration(max(0, to.Sub(from))) }

// Plural returns a number with a noun in the singular or plural.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// until formats a duration, rounded to the smallest displayed unit. A user who entered 6d sees 6d,
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
