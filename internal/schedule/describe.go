// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Describe returns the schedule in words, without its zone, for example "at 03:00, on Monday to
// Friday".
func (s *Schedule) Describe() string {
	clock, days := s.times.describeClock(), s.times.describeDays()
	// A phrase such as "every 5 minutes" is complete if the schedule restricts neither hours nor
	// days.
	if short, ok := strings.CutSuffix(clock, everyHour); ok && days == everyDay && strings.HasPrefix(short, "every ") {
		clock, days = short, ""
	}
	parts := []string{clock}
	if days != "" {
		parts = append(parts, days)
	}
	if months := s.times[monthField]; !months.full(fields[monthField]) {
		parts = append(parts, "in "+joinAnd(ranges(months.list(fields[monthField]), func(n int) string { return time.Month(n).String() })))
	}
	return strings.Join(parts, ", ")
}

const (
	everyHour = " of every hour"
	everyDay  = "every day"
)

// maxListedTimes is the maximum number of times of day that a description lists individually.
const maxListedTimes = 6

func (t *fieldValues) describeClock() string {
	minutes, hours := t[minuteField].list(fields[minuteField]), t[hourField].list(fields[hourField])
	allHours := t[hourField].full(fields[hourField])
	if !allHours && len(minutes)*len(hours) <= maxListedTimes {
		var clock []string
		for _, h := range hours {
			for _, m := range minutes {
				clock = append(clock, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + joinAnd(clock)
	}
	var words string
	step, stepped := stepOf(minutes, 60)
	switch {
	case t[minuteField].full(fields[minuteField]):
		words = "every minute"
	case stepped:
		words = fmt.Sprintf("every %d minutes", step)
	case len(minutes) == 1 && minutes[0] == 0:
		words = "on the hour"
	default:
		words = "at " + joinAnd(ranges(minutes, func(n int) string { return fmt.Sprintf(":%02d", n) }))
	}
	hourStep, hoursStepped := stepOf(hours, 24)
	switch {
	case allHours:
		return words + everyHour
	case hoursStepped:
		return fmt.Sprintf("%s of every %s hour from 00", words, ordinal(hourStep))
	default:
		return words + " of the hours " + joinAnd(ranges(hours, func(n int) string { return fmt.Sprintf("%02d", n) }))
	}
}

func (t *fieldValues) describeDays() string {
	days, weekdays := t[dayField], t[weekdayField]
	allDays, allWeekdays := days.full(fields[dayField]), weekdays.full(fields[weekdayField])
	both := !days.star && !weekdays.star
	dayWords := "on day " + joinAnd(ranges(days.list(fields[dayField]), strconv.Itoa)) + " of the month"
	weekdayWords := "on " + joinAnd(ranges(fromMonday(weekdays.list(fields[weekdayField])), func(n int) string { return time.Weekday(n % 7).String() }))
	switch {
	case allDays && allWeekdays, both && (allDays || allWeekdays):
		return everyDay
	case both:
		return dayWords + " or " + weekdayWords // As in cron, a day needs to match only one of the two fields.
	case allWeekdays:
		return dayWords
	default:
		return weekdayWords
	}
}

// fromMonday moves Sunday from the front of the list to the back, where it is 7.
func fromMonday(weekdays []int) []int {
	if len(weekdays) > 0 && weekdays[0] == 0 {
		return append(slices.Clone(weekdays[1:]), 7)
	}
	return weekdays
}

// stepOf returns n and true if the list consists of every nth value from 0 to size-1, with n > 1.
func stepOf(list []int, size int) (int, bool) {
	if len(list) < 2 || list[0] != 0 || size%len(list) != 0 {
		return 0, false
	}
	step := size / len(list)
	for i, n := range list {
		if n != i*step {
			return 0, false
		}
	}
	return step, step > 1
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	default:
		return strconv.Itoa(n) + "th"
	}
}

// ranges returns the names of the given values. It abbreviates three or more consecutive values as
// "a to c".
func ranges(list []int, name func(int) string) []string {
	var items []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j-i >= 2 {
			items = append(items, name(list[i])+" to "+name(list[j]))
		} else {
			for _, n := range list[i : j+1] {
				items = append(items, name(n))
			}
		}
		i = j + 1
	}
	return items
}

// joinAnd joins items as in an English sentence: "a, b and c".
func joinAnd(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}
