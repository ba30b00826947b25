// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// TestStripHasAllTicks checks that the columns of a strip include all ticks of the forecast, even
// those in its last minute.
func TestStripHasAllTicks(t *testing.T) {
	f := &forecast.Forecast{From: noon, Until: noon.Add(24 * time.Hour)}
	starts := 0
	for i := range 24 * 60 {
		f.Minutes = append(f.Minutes, forecast.Minute{Time: noon.Add(time.Duration(i) * time.Minute), Started: i % 7, Waiting: i % 3})
		starts += i % 7
	}
	f.NotStarted = []forecast.Tick{{Tick: noon.Add(-time.Hour)}, {Tick: f.Until, EarlierTicks: 4}}
	s := stripOf(f, nil, time.UTC)
	gotStarts, gotMissed := 0, 0
	for _, c := range s.Columns {
		gotStarts += c.Starts
		gotMissed += c.MissedTicks
		if c.StartedY < 0 || c.WaitY < 0 || c.Missed > stripDown || c.X+c.Width > stripWidth || c.Starts > 0 && c.Started == 0 {
			t.Errorf("a column is outside of the strip, or too small to be seen: %+v", c)
		}
	}
	if gotStarts != starts || gotMissed != 6 {
		t.Errorf("%d starts and %d missed, want %d and 6", gotStarts, gotMissed, starts)
	}
}

// TestStripOfABrokenWorkload checks that bars above and below the base line have the same scale. A
// single restart that misses all of its ticks must be a low bar, not as high as the busiest minute.
func TestStripOfABrokenWorkload(t *testing.T) {
	f := &forecast.Forecast{From: noon, Until: noon.Add(24 * time.Hour), Minutes: []forecast.Minute{{Time: noon.Add(time.Hour), Started: 40}}}
	for i := range 24 * 60 {
		f.NotStarted = append(f.NotStarted, forecast.Tick{Namespace: "shop", Name: "broken", Tick: noon.Add(time.Duration(i) * time.Minute), Outcome: tidekeeperv1.OutcomeMissed})
	}
	s := stripOf(f, nil, time.UTC)
	if c := s.Columns[4]; c.Missed > stripDown/5 || c.Missed == 0 || !strings.HasSuffix(c.Title, ", 15 missed or skipped by 1 restart") {
		t.Errorf("a single restart is %d high, of %d: %s", c.Missed, stripDown, c.Title)
	}
	f.Summary.Missed = 24 * 60
	if text := missedText(f); text != "1440 ticks of shop/broken" {
		t.Errorf("the page says %q", text)
	}
	f.NotStarted[7].Name = "other"
	if text := missedText(f); text != "1440 ticks of 2 restarts" {
		t.Errorf("of two restarts the page says %q", text)
	}
}

// TestStripInANightOfAnotherClock checks a strip across a daylight saving time change, which the
// strip must name. All columns have the same duration. A repeated hour has labels for both
// occurrences, with their zones, and a skipped hour has none.
func TestStripInANightOfAnotherClock(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		from   string
		hours  string
		clocks []string
		// at is the local time in the titles of some columns. want lists these titles.
		at   string
		want []string
	}{
		{
			"autumn", "2026-10-24T20:00:00+02:00", "21:00 00:00 03:00 CET 06:00 CET 09:00 CET 12:00 CET 15:00 CET 18:00 CET",
			[]string{"The clocks go back by 60m tomorrow 02:00 CET"}, "02:30", []string{"tomorrow 02:30", "tomorrow 02:30 CET"},
		},
		{
			"spring", "2027-03-27T20:00:00+01:00", "21:00 00:00 03:00 CEST 06:00 CEST 09:00 CEST 12:00 CEST 15:00 CEST 18:00 CEST",
			[]string{"The clocks go forward by 60m tomorrow 03:00 CEST"}, "02:30", nil,
		},
		{"another night", "2026-11-24T20:00:00+01:00", "21:00 00:00 03:00 06:00 09:00 12:00 15:00 18:00", nil, "02:30", []string{"tomorrow 02:30"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, err := time.Parse(time.RFC3339, tc.from)
			if err != nil {
				t.Fatal(err)
			}
			f := &forecast.Forecast{From: from, Until: from.Add(24 * time.Hour)}
			for i := range stripColumns {
				f.Minutes = append(f.Minutes, forecast.Minute{Time: from.Add(time.Duration(i) * 15 * time.Minute), Started: 1})
			}
			s := stripOf(f, nil, berlin)
			var hours, found []string
			for _, h := range s.Hours {
				hours = append(hours, h.Text)
			}
			for _, c := range s.Columns {
				if c.Starts != 1 {
					t.Errorf("the column %s has %d starts, want 1", c.Title, c.Starts)
				}
				if when, _, _ := strings.Cut(c.Title, ": "); strings.Contains(when, tc.at) {
					found = append(found, when)
				}
			}
			if diff := cmp.Diff(tc.hours, strings.Join(hours, " ")) + cmp.Diff(tc.want, found) + cmp.Diff(tc.clocks, s.Clocks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStripHours checks that the labels are full hours at the correct position, and that an hour's
// starts are to the right of its line.
func TestStripHours(t *testing.T) {
	from := noon.Add(-27*time.Minute + 7*time.Second)
	for days, want := range map[int]string{
		1: "12:00 2.1% start, 15:00 14.4% middle, 18:00 26.8% middle, 21:00 39.2% middle, 00:00 51.5% middle, 03:00 63.9% middle, 06:00 76.3% middle, 09:00 88.7% middle",
		2: "Sun 12:00 1.0% start, Sun 18:00 13.4% middle, Mon 00:00 25.8% middle, Mon 06:00 38.1% middle, Mon 12:00 50.5% middle, Mon 18:00 62.9% middle, Tue 00:00 75.3% middle, Tue 06:00 87.6% middle",
		7: "Mon 23 Nov 7.6% middle, Tue 24 Nov 21.8% middle, Wed 25 Nov 35.9% middle, Thu 26 Nov 50.0% middle, Fri 27 Nov 64.1% middle, Sat 28 Nov 78.4% middle, Sun 29 Nov 92.5% middle",
	} {
		f := &forecast.Forecast{From: from, Until: from.AddDate(0, 0, days), Minutes: []forecast.Minute{{Time: noon.Add(6 * time.Hour), Started: 1}}}
		s := stripOf(f, nil, time.UTC)
		var got []string
		for _, h := range s.Hours {
			got = append(got, h.Text+" "+h.Percent()+" "+h.Anchor())
			if h.Text == "18:00" || h.Text == "Sun 18:00" {
				i := slices.IndexFunc(s.Columns, func(c column) bool { return c.Starts > 0 })
				if int64(s.Columns[i].X) != h.X {
					t.Errorf("%d days: what starts at 18:00 is drawn at %d, and the line at %d", days, s.Columns[i].X, h.X)
				}
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%d days (-want +got):\n%s", days, diff)
		}
	}
}

// TestLane checks that a lane shows for how long each tick waited and its restart took, and that it
// filters ticks by trigger.
func TestLane(t *testing.T) {
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	record := func(trigger tidekeeperv1.Trigger, tick, start, end float64, outcome tidekeeperv1.Outcome) tidekeeperv1.RestartRecord {
		r := tidekeeperv1.RestartRecord{Trigger: trigger, ScheduledTime: metav1.Time{Time: at(tick)}, CompletedTime: metav1.Time{Time: at(end)}, Outcome: outcome}
		if start != 0 {
			r.StartedTime = &metav1.Time{Time: at(start)}
		}
		return r
	}
	object := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	object.Spec.Schedule, object.Spec.TimeZone = "0 0 * * *", "UTC"
	object.Status.History = []tidekeeperv1.RestartRecord{
		record(tidekeeperv1.TriggerSchedule, -12, -9.6, -4.8, tidekeeperv1.OutcomeSucceeded),
		record(tidekeeperv1.TriggerRequest, -14.4, -14.4, -13, tidekeeperv1.OutcomeFailed),
		record(tidekeeperv1.TriggerSchedule, -19.2, 0, -18, tidekeeperv1.OutcomeMissed),
		record(tidekeeperv1.TriggerChange, -21.6, -21.6, -19.2, tidekeeperv1.OutcomeSucceeded),
		record(tidekeeperv1.TriggerSchedule, -30, -30, -29, tidekeeperv1.OutcomeSucceeded),
	}
	coming := []forecast.Tick{
		{Tick: at(12), Start: at(12), Completion: at(13), Trigger: tidekeeperv1.TriggerSchedule},
		{Tick: at(14.4), Start: at(14.4), Completion: at(15), Trigger: tidekeeperv1.TriggerAge},
		{Tick: at(30), Start: at(30), Completion: at(31), Trigger: tidekeeperv1.TriggerSchedule},
	}
	axis := &laneAxis{From: at(-24), Now: noon, Until: at(24), local: time.UTC}
	type bar struct {
		Is, Flag, Title string
		Wait, Take      span
	}
	done := bar{"done", "", "00:00 Schedule: Succeeded, waited 144m, took 4h48m", span{250, 50}, span{300, 100}}
	failed := bar{"failed", "request", "21:36 Request: Failed, waited <1s, took 84m", span{200, 0}, span{200, 29}}
	missed := bar{"missed", "", "16:48 Schedule: Missed", span{100, 0}, span{100, 5}}
	changed := bar{"done", "change", "14:24 Change: Succeeded, waited <1s, took 144m", span{50, 0}, span{50, 50}}
	next := bar{"coming", "", "00:00 Schedule: coming", span{750, 0}, span{750, 20}}
	byAge := bar{"coming", "age", "02:24 Age: coming", span{800, 0}, span{800, 12}}
	for trigger, want := range map[string][]bar{
		"": {done, failed, missed, changed, next, byAge}, "Schedule": {done, missed, next}, "Request": {failed}, "Age": {byAge}, "Change": {changed}, "Nothing": nil,
	} {
		var got []bar
		for _, b := range axis.lane(object, coming, trigger).Bars {
			got = append(got, bar{b.Is, b.Flag, b.Title, b.Wait, b.Take})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("trigger %q (-want +got):\n%s", trigger, diff)
		}
	}
}
