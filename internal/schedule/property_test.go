// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is an expression as sets of matching values, together with its text, so that the reference
// implementation needs no parser.
type model struct {
	text  string
	sets  [5]map[int]bool
	stars [5]bool
}

func models() *rapid.Generator[model] {
	return rapid.Custom(func(t *rapid.T) model {
		var m model
		var texts []string
		for i, f := range fields {
			text, set, star := drawField(t, f)
			texts, m.sets[i], m.stars[i] = append(texts, text), set, star
		}
		m.text = strings.Join(texts, " ")
		return m
	})
}

func drawField(t *rapid.T, f field) (text string, set map[int]bool, star bool) {
	set = map[int]bool{}
	from, to, step := f.first, f.last, 1
	switch rapid.SampledFrom([]string{"*", "*", "*/n", "a-b", "list", "list"}).Draw(t, f.name) {
	case "*":
		text, star = rapid.SampledFrom([]string{"*", "?", "*/1"}).Draw(t, "star"), true
	case "*/n":
		step = rapid.IntRange(2, (f.last-f.first)/2).Draw(t, "step")
		text = fmt.Sprintf("*/%d", step)
	case "a-b":
		from = rapid.IntRange(f.first, f.last).Draw(t, "from")
		to = rapid.IntRange(from, f.last).Draw(t, "to")
		text = fmt.Sprintf("%d-%d", from, to)
	default:
		// Half of the values are small, since most clock changes happen early in the day.
		value := rapid.OneOf(rapid.IntRange(f.first, f.last), rapid.IntRange(f.first, min(f.last, f.first+4)))
		values := rapid.SliceOfN(value, 1, 4).Draw(t, "values")
		for i, v := range values {
			set[v] = true
			values[i] = v
		}
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]"), set, false
	}
	for v := from; v <= to; v += step {
		set[v] = true
	}
	return text, set, star
}

func (m model) matches(wall time.Time) bool {
	day, weekday := m.sets[2][wall.Day()], m.sets[4][int(wall.Weekday())]
	either := day || weekday
	if m.stars[2] || m.stars[4] {
		either = day && weekday
	}
	return either && m.sets[0][wall.Minute()] && m.sets[1][wall.Hour()] && m.sets[3][int(wall.Month())]
}

// reference returns the ticks in (from, to]. It checks the zone's clock at every minute, and
// implements the rule in docs/concepts/schedules.md literally.
func (m model) reference(location *time.Location, from, to time.Time) []time.Time {
	clock := func(t time.Time) time.Time {
		_, offset := t.In(location).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	interval := len(m.sets[1]) == 24
	start := from.Truncate(time.Minute).Add(-48 * time.Hour)
	latest := clock(start) // the latest time that the zone's clock has shown
	var ticks []time.Time
	for t := start.Add(time.Minute); !t.After(to); t = t.Add(time.Minute) {
		due := false
		if interval {
			due = m.matches(clock(t))
		} else {
			for ; latest.Before(clock(t)); latest = latest.Add(time.Minute) {
				due = due || m.matches(latest.Add(time.Minute))
			}
		}
		if due && t.After(from) {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

var testZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "America/Havana",
	"America/St_Johns", "America/Caracas", "America/Santiago", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Kwajalein",
	"Pacific/Chatham", "Pacific/Auckland", "Africa/Casablanca", "Africa/Cairo", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza",
	"Asia/Pyongyang", "Antarctica/Troll", "Antarctica/Casey", "Europe/Moscow",
}

// instants generates times, most of which are close to a clock change of the zone. The earliest
// times are after the last date on which any of the testZones had an offset with seconds.
func instants(location *time.Location) *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		at := time.Unix(rapid.Int64Range(time.Date(1973, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "at"), 0).UTC()
		if _, end := at.In(location).ZoneBounds(); !end.IsZero() && rapid.IntRange(0, 9).Draw(t, "near") > 0 {
			at = end.UTC().Add(time.Duration(rapid.OneOf(rapid.IntRange(-36*60, 3*60), rapid.IntRange(-90, 90)).Draw(t, "minutes")) * time.Minute)
		}
		return at.Add(time.Duration(rapid.SampledFrom([]int64{0, 0, 1, -1, 5e8, 59e9}).Draw(t, "nanoseconds")))
	})
}

// drawSchedule returns a random model, its schedule and a start time. It skips expressions whose
// dates never happen.
func drawSchedule(t *rapid.T) (model, *Schedule, time.Time) {
	m := models().Draw(t, "expression")
	s, err := Parse(m.text, rapid.SampledFrom(testZones).Draw(t, "zone"))
	if err != nil {
		if strings.Contains(err.Error(), "never happens") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	return m, s, instants(s.location).Draw(t, "after")
}

func TestNextIsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, s, after := drawSchedule(t)
		upTo := after.Add(48 * time.Hour)
		var got []time.Time
		for at := after; ; {
			next, ok := s.Next(at)
			if !ok {
				t.Fatalf("no tick of %s after %s", s, at)
			}
			if !next.After(at) {
				t.Fatalf("Next(%s) of %s is %s, which is not later", at, s, next)
			}
			if next.After(upTo) {
				break
			}
			got = append(got, next)
			at = next
		}
		if diff := cmp.Diff(local(s, m.reference(s.location, after, upTo)), local(s, got)); diff != "" {
			t.Fatalf("ticks of %s in two days after %s (-reference +Next):\n%s", s, after.In(s.location), diff)
		}
	})
}

func TestLatestIsTheLastOfNext(t *testing.T) {
	type answer struct {
		Tick   time.Time
		Missed int
		OK     bool
	}
	rapid.Check(t, func(t *rapid.T) {
		_, s, after := drawSchedule(t)
		length := rapid.OneOf(rapid.Int64Range(0, int64(3*time.Hour)), rapid.Int64Range(-1, int64(72*time.Hour)), rapid.Int64Range(0, int64(2*365*24*time.Hour)))
		upTo := after.Add(time.Duration(length.Draw(t, "length")))
		var want answer
		ticks := 0
		for at, ok := s.Next(after); ok && !at.After(upTo); at, ok = s.Next(at) {
			if ticks++; ticks > 3*MaxMissed {
				t.Skip("too many to iterate")
			}
			want = answer{at, min(ticks-1, MaxMissed), true}
		}
		var got answer
		got.Tick, got.Missed, got.OK = s.Latest(after, upTo)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("latest tick of %s in (%s, %s] (-iterated +Latest):\n%s", s, after, upTo, diff)
		}
	})
}

func TestSpreadIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.Int64Range(-1, int64(100*time.Hour)).Draw(t, "window"))
		namespace, name := rapid.String().Draw(t, "namespace"), rapid.String().Draw(t, "name")
		got := Spread(namespace, name, window)
		if got < 0 || got%time.Second != 0 || (got >= window && got != 0) || got != Spread(namespace, name, window) {
			t.Fatalf("Spread(%q, %q, %s) = %s, want the same whole seconds below the window each time", namespace, name, window, got)
		}
	})
	counts := make([]int, 60)
	for i := range 60000 {
		counts[Spread(fmt.Sprint("tenant-", i%100), fmt.Sprint("web-", i/100), time.Minute)/time.Second]++
	}
	if low, high := slices.Min(counts), slices.Max(counts); low < 850 || high > 1150 {
		t.Errorf("of 60000 objects %d to %d start in each second of a minute, want about 1000: %v", low, high, counts)
	}
}

// FuzzParse checks that Parse returns for any input, and that every schedule that it accepts has
// strictly increasing ticks. The fuzzer's own time limit detects a hang.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0 3 * * *", "@daily", "@every 1h", "TZ=", "TZ=UTC 0 3 * * *", "*/15 0-23 1,31 feb 7", "0 0 30 2 *", "0 0 29 2 *", "H 3 * * *", "0 0 L * FRI#2", "*/60 * * * *", ", , , , ,"} {
		for _, zone := range []string{"", "Australia/Lord_Howe", "Local", "../x"} {
			f.Add(seed, zone, int64(1774746000))
		}
	}
	f.Add("0 3 * * *", "Europe/Berlin", time.Time{}.Unix())
	f.Add("0 * 29 2 *", "Africa/Casablanca", time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC).Unix())
	f.Fuzz(func(t *testing.T, expression, zone string, unix int64) {
		s, err := Parse(expression, zone)
		if err != nil {
			return
		}
		again, err := Parse(s.expression, s.Zone())
		if err != nil || again.String() != s.String() {
			t.Errorf("%s, parsed again, is %v, %v", s, again, err)
		}
		// The start is limited to about the years -4000 to 6000, since this test does not cover the
		// limits of the calendar.
		start := time.Unix(unix%150_000_000_000, 0)
		at := start
		for range 10 {
			next, ok := s.Next(at)
			if !ok || !next.After(at) {
				t.Fatalf("Next(%s) of %s is %s, %t", at, s, next, ok)
			}
			at = next
		}
		if tick, missed, ok := s.Latest(start, at); !ok || missed != 9 || !tick.Equal(at) {
			t.Errorf("the tenth tick of %s after %s is %s, and Latest says %s, %d, %t", s, start, at, tick, missed, ok)
		}
	})
}
