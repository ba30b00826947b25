// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// cronField is one of the five fields of an expression.
type cronField struct {
	first, last int
	names       []string // of first, first+1, ...
}

var cronFields = [5]cronField{
	{first: 0, last: 59},
	{first: 0, last: 23},
	{first: 1, last: 31},
	{first: 1, last: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{first: 0, last: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var cronDescriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// values are what a field names, in order; open says that it was left open with
// a *, which counts in the rule for the two day fields.
type values struct {
	list []int
	open bool
}

// times are the wall clock times of an expression. What an expression means is
// for internal/schedule to say, and a test holds the two together; this is only
// to put it into words.
type times struct{ minute, hour, day, month, weekday values }

// timesOf reads an expression that schedule.Parse accepts.
func timesOf(expression string) (times, error) {
	if _, err := schedule.Parse(expression, ""); err != nil {
		return times{}, err
	}
	texts := strings.Fields(expression)
	if five, ok := cronDescriptors[texts[0]]; ok {
		texts = strings.Fields(five)
	}
	var t times
	for i, v := range []*values{&t.minute, &t.hour, &t.day, &t.month, &t.weekday} {
		*v = cronFields[i].values(texts[i])
	}
	return t, nil
}

// values returns what a field's valid text names.
func (f cronField) values(text string) values {
	var v values
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		low, high := f.first, f.last
		if span == "*" || span == "?" {
			v.open = v.open || step == 1
		} else {
			lowText, highText, ranged := strings.Cut(span, "-")
			low = f.value(lowText)
			if ranged {
				high = f.value(highText)
			} else if !stepped {
				high = low
			}
		}
		for n := low; n <= high; n += max(1, step) {
			if n > f.last { // Sunday as 7
				v.list = append(v.list, f.first)
			} else {
				v.list = append(v.list, n)
			}
		}
	}
	slices.Sort(v.list)
	v.list = slices.Compact(v.list)
	return v
}

func (f cronField) value(text string) int {
	for i, name := range f.names {
		if strings.EqualFold(name, text) {
			return f.first + i
		}
	}
	n, _ := strconv.Atoi(text)
	return n
}

// full tells whether a list has all values of its field.
func full(list []int, f cronField) bool { return len(list) == f.last-f.first+1 }

// everyHour tells whether the schedule is an interval, that goes on through a
// change of the clock.
func (t times) everyHour() bool { return full(t.hour.list, cronFields[1]) }

// names tells whether a wall clock time is one of the schedule's.
func (t times) names(wall time.Time) bool {
	in := slices.Contains[[]int]
	if !in(t.minute.list, wall.Minute()) || !in(t.hour.list, wall.Hour()) || !in(t.month.list, int(wall.Month())) {
		return false
	}
	day, weekday := in(t.day.list, wall.Day()), in(t.weekday.list, int(wall.Weekday()))
	if t.day.open || t.weekday.open {
		return day && weekday
	}
	return day || weekday
}

// String puts the schedule into words.
func (t times) String() string {
	parts := []string{t.clockWords(), t.dayWords()}
	if !full(t.month.list, cronFields[3]) {
		parts = append(parts, "in "+and(ranges(t.month.list, func(n int) string { return time.Month(n).String() })))
	}
	return strings.Join(parts, ", ")
}

// mostTimes is how many times of a day are listed one by one.
const mostTimes = 6

func (t times) clockWords() string {
	minutes, hours := t.minute.list, t.hour.list
	if !t.everyHour() && len(minutes)*len(hours) <= mostTimes {
		var clock []string
		for _, h := range hours {
			for _, m := range minutes {
				clock = append(clock, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + and(clock)
	}
	var words string
	step, stepped := stepOf(minutes, 60)
	switch {
	case full(minutes, cronFields[0]):
		words = "every minute"
	case stepped:
		words = fmt.Sprintf("every %d minutes", step)
	case len(minutes) == 1 && minutes[0] == 0:
		words = "on the hour"
	default:
		words = "at " + and(ranges(minutes, func(n int) string { return fmt.Sprintf(":%02d", n) }))
	}
	hourStep, hoursStepped := stepOf(hours, 24)
	switch {
	case t.everyHour():
		return words + " of every hour"
	case hoursStepped:
		return fmt.Sprintf("%s of every %s hour from 00", words, ordinal(hourStep))
	default:
		return words + " of the hours " + and(ranges(hours, func(n int) string { return fmt.Sprintf("%02d", n) }))
	}
}

func (t times) dayWords() string {
	days, weekdays := t.day.list, t.weekday.list
	allDays, allWeekdays := full(days, cronFields[2]), full(weekdays, cronFields[4])
	both := !t.day.open && !t.weekday.open
	dayWords := "on day " + and(ranges(days, strconv.Itoa)) + " of the month"
	weekdayWords := "on " + and(ranges(fromMonday(weekdays), func(n int) string { return time.Weekday(n % 7).String() }))
	switch {
	case allDays && allWeekdays, both && (allDays || allWeekdays):
		return "every day"
	case both:
		return dayWords + " or " + weekdayWords // cron: one of the two is enough
	case allWeekdays:
		return dayWords
	default:
		return weekdayWords
	}
}

// fromMonday puts Sunday behind Saturday, as 7.
func fromMonday(weekdays []int) []int {
	if len(weekdays) > 0 && weekdays[0] == 0 {
		return append(slices.Clone(weekdays[1:]), 7)
	}
	return weekdays
}

// stepOf returns the step of values that are just every step-th of so many.
func stepOf(list []int, of int) (int, bool) {
	if len(list) < 2 || list[0] != 0 || of%len(list) != 0 {
		return 0, false
	}
	step := of / len(list)
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

// ranges names values, three and more in a row as "a to c".
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
