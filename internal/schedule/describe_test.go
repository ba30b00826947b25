// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDescribe(t *testing.T) {
	for _, tc := range []struct{ expression, want string }{
		{"0 3 * * *", "at 03:00, every day"},
		{"0 3 * * 1-5", "at 03:00, on Monday to Friday"},
		{"0 3 * * mon,fri", "at 03:00, on Monday and Friday"},
		{"0 3 * * 6-7", "at 03:00, on Saturday and Sunday"},
		{"0 3 * * 5-7", "at 03:00, on Friday to Sunday"},
		{"0 9,13,17 * * *", "at 09:00, 13:00 and 17:00, every day"},
		{"* * * * *", "every minute"},
		{"*/15 * * * *", "every 15 minutes"},
		{"*/30 9-17 * * 1-5", "every 30 minutes of the hours 09 to 17, on Monday to Friday"},
		{"5/20 * * * *", "at :05, :25 and :45 of every hour, every day"},
		{"0 * * * *", "on the hour of every hour, every day"},
		{"0 */2 * * *", "on the hour of every 2nd hour from 00, every day"},
		{"0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00, every day"},
		{"0 0 1 * *", "at 00:00, on day 1 of the month"},
		{"0 0 1,15 jan,jul *", "at 00:00, on day 1 and 15 of the month, in January and July"},
		{"0 0 13 * 5", "at 00:00, on day 13 of the month or on Friday"},
		{"0 0 */2 * 5", "at 00:00, on day 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the month or on Friday"},
		{"0 0 13 * 0-6", "at 00:00, every day"},
		{"0 0 */1 * 5", "at 00:00, on Friday"},
		{"@yearly", "at 00:00, on day 1 of the month, in January"},
		{"@weekly", "at 00:00, on Sunday"},
		{"@hourly", "on the hour of every hour, every day"},
	} {
		s, err := Parse(tc.expression, "")
		if err != nil {
			t.Errorf("%s: %v", tc.expression, err)
			continue
		}
		if diff := cmp.Diff(tc.want, s.Describe()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.expression, diff)
		}
	}
}

// TestDescriptionSaysWhatTheScheduleDoes checks that the ticks of a schedule can be derived from
// its description alone.
func TestDescriptionSaysWhatTheScheduleDoes(t *testing.T) {
	item := func(t *rapid.T, f field) string {
		low := rapid.IntRange(f.first, f.last).Draw(t, "low")
		high := rapid.IntRange(low, f.last).Draw(t, "high")
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			return "*"
		case 1:
			return strconv.Itoa(low)
		case 2:
			return fmt.Sprintf("%d-%d", low, high)
		case 3:
			return fmt.Sprintf("*/%d", rapid.IntRange(1, f.last-f.first).Draw(t, "step"))
		default:
			return fmt.Sprintf("%d-%d/%d", low, high, rapid.IntRange(1, max(1, high-low)).Draw(t, "step"))
		}
	}
	// These schedules have special descriptions, and would rarely be drawn at random.
	often := rapid.SampledFrom([]string{"* * * * *", "*/5 * * * *", "*/20 * * jan,mar *", "* * * * 0-6"})
	rapid.Check(t, func(t *rapid.T) {
		texts := make([]string, 5)
		if rapid.IntRange(0, 9).Draw(t, "often") == 0 {
			texts = strings.Fields(often.Draw(t, "expression"))
		}
		for i, f := range fields {
			if texts[i] != "" {
				continue
			}
			items := make([]string, rapid.IntRange(1, 2).Draw(t, "items"))
			for j := range items {
				items[j] = item(t, f)
			}
			texts[i] = strings.Join(items, ",")
		}
		expression := strings.Join(texts, " ")
		s, err := Parse(expression, "")
		if err != nil {
			t.Skip(err)
		}
		words := s.Describe()
		reader, err := read(words)
		if err != nil {
			t.Fatalf("%s: %q: %v", expression, words, err)
		}
		at := time.Unix(rapid.Int64Range(1.7e9, 1.9e9).Draw(t, "at"), 0).UTC()
		for range 20 {
			tick, ok := s.Next(at)
			if !ok {
				break
			}
			if want := reader.next(at); !want.Equal(tick) {
				t.Fatalf("%s: after %s the schedule ticks at %s; its description, %q, says %s", expression, at, tick, words, want)
			}
			if !s.times.contain(tick) {
				t.Fatalf("%s: contain(%s) is false", expression, tick)
			}
			at = tick
		}
	})
}

// reading is the schedule as understood from its description.
type reading struct {
	clock        map[[2]int]bool // the set of times of day, as hour and minute
	day, weekday map[int]bool    // nil if the description does not restrict them
	month        map[int]bool
}

// read parses the description of a schedule without using the schedule itself.
func read(words string) (reading, error) {
	r := reading{clock: map[[2]int]bool{}}
	if head, months, ok := strings.Cut(words, ", in "); ok {
		words = head
		r.month = numbers(months, func(name string) int {
			for m := time.January; m <= time.December; m++ {
				if m.String() == name {
					return int(m)
				}
			}
			return -1
		})
	}
	// The part about times of day may contain commas; the part about days begins with "on" or
	// "every day".
	days := regexp.MustCompile(`, (every day|on day .*|on [A-Z].*)$`).FindString(words)
	clock := strings.TrimSuffix(words, days)
	switch days = strings.TrimPrefix(days, ", "); {
	case days == "" && strings.HasPrefix(clock, "every ") && !strings.Contains(clock, " of "):
		clock += everyHour
	case days == "every day":
	case strings.HasPrefix(days, "on day "):
		list, weekdays, either := strings.Cut(strings.TrimPrefix(days, "on day "), " of the month")
		r.day = numbers(list, wordNumber)
		if weekdays != "" && either {
			r.weekday = numbers(strings.TrimPrefix(weekdays, " or on "), weekdayNumber)
		}
	case strings.HasPrefix(days, "on "):
		r.weekday = numbers(strings.TrimPrefix(days, "on "), weekdayNumber)
	default:
		return r, fmt.Errorf("it names no days")
	}
	minuteWords, hourWords, split := strings.Cut(clock, " of ")
	if !split {
		for _, text := range strings.Split(strings.ReplaceAll(strings.TrimPrefix(clock, "at "), " and ", ", "), ", ") {
			at, err := time.Parse("15:04", text)
			if err != nil {
				return r, err
			}
			r.clock[[2]int{at.Hour(), at.Minute()}] = true
		}
		return r, nil
	}
	minutes := map[int]bool{}
	var hours map[int]bool
	var step int
	switch {
	case minuteWords == "every minute":
		minutes = every(1, 60)
	case minuteWords == "on the hour":
		minutes[0] = true
	case strings.HasPrefix(minuteWords, "at "):
		minutes = numbers(strings.TrimPrefix(minuteWords, "at "), wordNumber)
	default:
		if _, err := fmt.Sscanf(minuteWords, "every %d minutes", &step); err != nil {
			return r, err
		}
		minutes = every(step, 60)
	}
	switch {
	case hourWords == "every hour":
		hours = every(1, 24)
	case strings.HasPrefix(hourWords, "the hours "):
		hours = numbers(strings.TrimPrefix(hourWords, "the hours "), wordNumber)
	default:
		if _, err := fmt.Sscanf(hourWords, "every %d", &step); err != nil {
			return r, err
		}
		hours = every(step, 24)
	}
	for h := range hours {
		for m := range minutes {
			r.clock[[2]int{h, m}] = true
		}
	}
	return r, nil
}

func every(step, of int) map[int]bool {
	set := map[int]bool{}
	for n := 0; n < of; n += step {
		set[n] = true
	}
	return set
}

func wordNumber(text string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(text, ":"))
	if err != nil {
		return -1
	}
	return n
}

func weekdayNumber(text string) int {
	names := []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	return slices.Index(names, text) + 1
}

func numbers(text string, value func(string) int) map[int]bool {
	set := map[int]bool{}
	for _, item := range strings.Split(strings.ReplaceAll(text, " and ", ", "), ", ") {
		low, high, ranged := strings.Cut(item, " to ")
		if !ranged {
			high = low
		}
		for n := value(low); n <= value(high); n++ {
			set[n] = true
		}
	}
	return set
}

// next returns the first matching minute after the given time. It checks each minute.
func (r reading) next(after time.Time) time.Time {
	for day := after.Truncate(24 * time.Hour); ; day = day.AddDate(0, 0, 1) {
		w := int(day.Weekday())
		if w == 0 {
			w = 7
		}
		is := r.day == nil && r.weekday == nil || r.day[day.Day()] || r.weekday[w]
		if !is || r.month != nil && !r.month[int(day.Month())] {
			continue
		}
		for minute := range 24 * 60 {
			at := day.Add(time.Duration(minute) * time.Minute)
			if at.After(after) && r.clock[[2]int{minute / 60, minute % 60}] {
				return at
			}
		}
	}
}
