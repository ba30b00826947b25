// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func utc(t testing.TB, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWindows(t *testing.T) {
	window := func(expression, zone string, length time.Duration) Window {
		return Window{mustParse(t, expression, zone), length}
	}
	overMidnight := Windows{window("0 22 * * *", "Europe/Berlin", 8*time.Hour)}
	for _, tc := range []struct {
		name    string
		windows Windows
		at      string
		// closes is "" if the windows are closed at the tested time. opens is "" if they never open
		// again.
		closes, opens string
	}{
		{"before it opens", overMidnight, "2026-01-10 20:59", "", "2026-01-10 21:00"},
		{"as it opens", overMidnight, "2026-01-10 21:00", "2026-01-11 05:00", "2026-01-10 21:00"},
		{"after midnight", overMidnight, "2026-01-11 04:59", "2026-01-11 05:00", "2026-01-11 04:59"},
		{"as it closes", overMidnight, "2026-01-11 05:00", "", "2026-01-11 21:00"},
		{"a night of seven hours by the clock", overMidnight, "2026-03-28 23:00", "2026-03-29 05:00", "2026-03-28 23:00"},
		{"summer time", overMidnight, "2026-03-29 19:59", "", "2026-03-29 20:00"},
		{"on weekdays", Windows{window("0 9 * * 1-5", "UTC", time.Hour)}, "2026-06-12 10:00", "", "2026-06-15 09:00"},
		{
			"two that overlap are one", Windows{window("0 1 * * *", "UTC", 2*time.Hour), window("30 2 * * *", "UTC", time.Hour)},
			"2026-06-12 01:30", "2026-06-12 03:30", "2026-06-12 01:30",
		},
		{
			"two without a gap are one", Windows{window("0 1 * * *", "UTC", time.Hour), window("0 2 * * *", "UTC", time.Hour)},
			"2026-06-12 01:30", "2026-06-12 03:00", "2026-06-12 01:30",
		},
		{
			"two with a gap", Windows{window("0 1 * * *", "UTC", time.Hour), window("1 2 * * *", "UTC", time.Hour)},
			"2026-06-12 02:00", "", "2026-06-12 02:01",
		},
		{"longer than a day", Windows{window("0 0 * * 6", "UTC", 48*time.Hour)}, "2026-06-14 12:00", "2026-06-15 00:00", "2026-06-14 12:00"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := utc(t, tc.at)
			closes, open := tc.windows.ClosesAt(at)
			if open != (tc.closes != "") || open && !closes.Equal(utc(t, tc.closes)) {
				t.Errorf("open: %v, until %s; want %q", open, closes, tc.closes)
			}
			if opens, ok := tc.windows.OpensAt(at); !ok || !opens.Equal(utc(t, tc.opens)) {
				t.Errorf("opens at %s (%v), want %s", opens, ok, tc.opens)
			}
		})
	}
	if closes, open := (Windows{}).ClosesAt(utc(t, "2026-06-14 12:00")); !open || !closes.IsZero() {
		t.Errorf("without windows: open: %v, until %s", open, closes)
	}
}

// TestTicksInWindows compares Ticks with a reference implementation, which checks for each tick of
// the schedule whether a window is open in any minute until the tick's deadline.
func TestTicksInWindows(t *testing.T) {
	expressions := []string{"0 3 * * *", "*/20 * * * *", "30 2 * * *", "@hourly", "15,45 0-6 * * 1-5", "0 0 1 * *", "0 12 * * 0"}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}
	begins := []string{"2026-03-27 00:00", "2026-10-23 00:00", "2026-06-10 00:00", "2026-03-06 00:00"}
	const days = 3
	rapid.Check(t, func(rt *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(rt, "zone")
		draw := func(name string) *Schedule {
			return mustParse(t, rapid.SampledFrom(expressions).Draw(rt, name), zone)
		}
		minutes := func(most int, name string) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(rt, name)) * time.Minute
		}
		ticks := Ticks{Schedule: draw("schedule"), Offset: minutes(60, "offset"), Deadline: time.Minute + minutes(600, "deadline")}
		for range rapid.IntRange(0, 3).Draw(rt, "windows") {
			ticks.Windows = append(ticks.Windows, Window{draw("opens"), time.Minute + minutes(30*60, "length")})
		}
		begin := utc(t, rapid.SampledFrom(begins).Draw(rt, "begin"))
		end := begin.AddDate(0, 0, days)
		open := openMinutes(ticks.Windows, begin, end.AddDate(0, 0, 2))
		var want []time.Time
		for tick, ok := ticks.Schedule.Next(begin); ok && tick.Before(end); tick, ok = ticks.Schedule.Next(tick) {
			due := tick.Add(ticks.Offset)
			for at := due; !at.After(due.Add(ticks.Deadline)); at = at.Add(time.Minute) {
				if open[at.Unix()] {
					want = append(want, tick)
					break
				}
			}
		}
		after := begin
		for i, tick := range want {
			if got, ok := ticks.Next(after); !ok || !got.Equal(tick) {
				rt.Fatalf("the tick after %s is %s (%v), want %s", after, got, ok, tick)
			}
			after = tick
			if i%7 != 0 {
				continue // A later call of Latest counts these ticks as well.
			}
			upTo := end.Add(-time.Minute)
			if i+1 < len(want) {
				upTo = want[i+1].Add(-time.Second)
			}
			if got, missed, ok := ticks.Latest(begin, upTo); !ok || !got.Equal(tick) || missed != i {
				rt.Fatalf("the latest tick until %s is %s after %d others (%v), want %s after %d", upTo, got, missed, ok, tick, i)
			}
		}
		if got, ok := ticks.Next(after); ok && got.Before(end) {
			rt.Fatalf("the tick after %s is %s, want none before %s", after, got, end)
		}
	})
}

// openMinutes returns the minutes during which a window is open, as minutes since 1970.
func openMinutes(windows Windows, begin, end time.Time) map[int64]bool {
	open := map[int64]bool{}
	for at := begin; !at.After(end); at = at.Add(time.Minute) {
		open[at.Unix()] = len(windows) == 0
	}
	for _, w := range windows {
		for opens, ok := w.Opens.Next(begin.Add(-w.Length - time.Hour)); ok && !opens.After(end); opens, ok = w.Opens.Next(opens) {
			for at := opens; at.Before(opens.Add(w.Length)); at = at.Add(time.Minute) {
				open[at.Unix()] = true
			}
		}
	}
	return open
}

// TestWindowsThatNeverMeet checks that there are no effective ticks if no tick of the schedule is
// ever inside a window.
func TestWindowsThatNeverMeet(t *testing.T) {
	ticks := Ticks{
		Schedule: mustParse(t, "0 12 * * *", "UTC"), Deadline: time.Hour,
		Windows: Windows{{mustParse(t, "0 2 * * *", "UTC"), time.Hour}},
	}
	at := utc(t, "2026-06-10 00:00")
	if tick, ok := ticks.Next(at); ok {
		t.Errorf("the next tick is %s", tick)
	}
	if tick, _, ok := ticks.Latest(at.AddDate(0, -1, 0), at); ok {
		t.Errorf("the latest tick is %s", tick)
	}
}

// TestSearchGoesOn checks that a search that gives up returns the time from which the next search
// must continue, so that a rare tick is found among many windows without a tick.
func TestSearchGoesOn(t *testing.T) {
	ticks := Ticks{
		Schedule: mustParse(t, "30 * * * *", "UTC"), Deadline: time.Minute,
		Windows: Windows{{mustParse(t, "0 * * * *", "UTC"), time.Minute}, {mustParse(t, "0 3 1 1 *", "UTC"), 2 * time.Hour}},
	}
	after := utc(t, "2026-06-10 00:00")
	for searches := 0; ; searches++ {
		tick, until, ok := ticks.Search(after)
		if ok {
			if want := utc(t, "2027-01-01 03:30"); !tick.Equal(want) {
				t.Errorf("the first tick is %s, want %s", tick, want)
			}
			return
		}
		if !until.After(after) || searches > 100 {
			t.Fatalf("search %d after %s ends at %s", searches, after, until)
		}
		after = until
	}
}
