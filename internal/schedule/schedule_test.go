// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// layout is the format of ticks in the tests and the documentation, in the zone's local time.
const layout = "2006-01-02T15:04Z07:00"

func mustParse(t interface {
	Helper()
	Fatal(...any)
}, expression, zone string) *Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustTime(t *testing.T, text string) time.Time {
	t.Helper()
	for _, l := range []string{layout, time.RFC3339Nano} {
		if parsed, err := time.Parse(l, text); err == nil {
			return parsed
		}
	}
	t.Fatalf("%q is no time such as %s", text, layout)
	return time.Time{}
}

// local formats ticks in the schedule's local time, with seconds only if they are not 0.
func local(s *Schedule, ticks []time.Time) []string {
	var texts []string
	for _, tick := range ticks {
		l := layout
		if tick.Second() != 0 {
			l = time.RFC3339Nano
		}
		texts = append(texts, tick.In(s.location).Format(l))
	}
	return texts
}

func TestTicks(t *testing.T) {
	tests := []struct {
		name, schedule, zone, after, want string
	}{
		{"ordinary nights", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-11T03:00Z 2026-01-12T03:00Z"},
		{"strictly after, by a nanosecond", "0 3 * * *", "", "2026-01-10T02:59:59.999999999Z", "2026-01-10T03:00Z 2026-01-11T03:00Z"},
		{"just after the tick", "0 3 * * *", "", "2026-01-10T03:00:00.000000001Z", "2026-01-11T03:00Z"},
		{"@daily", "@daily", "", "2026-01-10T03:00Z", "2026-01-11T00:00Z 2026-01-12T00:00Z"},
		{"@midnight", "@midnight", "", "2026-01-10T03:00Z", "2026-01-11T00:00Z"},
		{"@hourly", "@hourly", "", "2026-01-10T03:00Z", "2026-01-10T04:00Z"},
		{"@weekly is Sunday", "@weekly", "", "2026-01-10T03:00Z", "2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"@monthly", "@monthly", "", "2026-01-10T03:00Z", "2026-02-01T00:00Z"},
		{"@yearly", "@yearly", "", "2026-01-10T03:00Z", "2027-01-01T00:00Z"},
		{"@annually", "@annually", "", "2026-01-10T03:00Z", "2027-01-01T00:00Z"},
		{"either day field", "0 0 13 * fri", "", "2026-01-01T00:00Z", "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-13T00:00Z"},
		{"a step in the day is a restriction", "0 0 */10 * mon", "", "2026-01-01T00:00Z", "2026-01-05T00:00Z 2026-01-11T00:00Z 2026-01-12T00:00Z"},
		{"Sunday is 7", "0 0 * * 7", "", "2026-01-10T00:00Z", "2026-01-11T00:00Z 2026-01-18T00:00Z"},
		{"a range to Sunday", "0 0 * * 5-7/2", "", "2026-01-05T00:00Z", "2026-01-09T00:00Z 2026-01-11T00:00Z 2026-01-16T00:00Z"},
		{"a value with a step ends with Saturday", "0 0 * * 2/2", "", "2026-01-05T00:00Z", "2026-01-06T00:00Z 2026-01-08T00:00Z 2026-01-10T00:00Z 2026-01-13T00:00Z"},
		{"names in any case", "0 0 * JAN THU", "", "2026-01-10T00:00Z", "2026-01-15T00:00Z"},
		{"29 February over 2100", "0 0 29 2 *", "Europe/Berlin", "2092-03-01T00:00Z", "2096-02-29T00:00+01:00 2104-02-29T00:00+01:00"},
		{"29 February, every hour", "30 * 29 2 *", "Africa/Casablanca", "2096-02-29T23:45Z", "2104-02-29T00:30+01:00 2104-02-29T01:30+01:00"},
		{"a day that few months have", "0 0 31 4,6,7 *", "", "2026-01-10T00:00Z", "2026-07-31T00:00Z 2027-07-31T00:00Z"},

		// In Berlin in spring, 02:00 +01:00 becomes 03:00 +02:00. In autumn, 03:00 +02:00 becomes
		// 02:00 +01:00.
		{"Berlin gap: before and after it", "30 1 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T01:30+01:00 2026-03-30T01:30+02:00"},
		{"Berlin gap: in it", "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z", "2026-03-28T02:30+01:00 2026-03-29T03:00+02:00 2026-03-30T02:30+02:00"},
		{"Berlin gap: its start", "0 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T03:00+02:00 2026-03-30T02:00+02:00"},
		{"Berlin gap: its last minute", "59 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T03:00+02:00 2026-03-30T02:59+02:00"},
		{"Berlin gap: its end", "0 3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T03:00+02:00 2026-03-30T03:00+02:00"},
		{"Berlin gap: several are one", "0,15,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T03:00+02:00 2026-03-30T02:00+02:00"},
		{"Berlin gap: and one with what is due then", "0,30 2-3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T03:00+02:00 2026-03-29T03:30+02:00 2026-03-30T02:00+02:00"},
		{"Berlin gap: every two hours is fixed times", "0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30Z", "2026-03-29T00:00+01:00 2026-03-29T03:00+02:00 2026-03-29T04:00+02:00"},
		{"Berlin gap: hourly", "7 * * * *", "Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T01:07+01:00 2026-03-29T03:07+02:00 2026-03-29T04:07+02:00"},
		{"Berlin gap: every 20 minutes", "*/20 * * * *", "Europe/Berlin", "2026-03-29T00:30Z", "2026-03-29T01:40+01:00 2026-03-29T03:00+02:00 2026-03-29T03:20+02:00"},
		{"Berlin overlap: before and after it", "30 3 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T03:30+01:00 2026-10-26T03:30+01:00"},
		{"Berlin overlap: in it", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T02:30+02:00 2026-10-26T02:30+01:00"},
		{"Berlin overlap: its start", "0 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T02:00+02:00 2026-10-26T02:00+01:00"},
		{"Berlin overlap: its end", "0 3 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T03:00+01:00 2026-10-26T03:00+01:00"},
		{"Berlin overlap: asked in the second pass", "30 2 * * *", "Europe/Berlin", "2026-10-25T02:00+01:00", "2026-10-26T02:30+01:00"},
		{"Berlin overlap: its end, asked in the second pass", "0 3 * * *", "Europe/Berlin", "2026-10-25T02:15+01:00", "2026-10-25T03:00+01:00 2026-10-26T03:00+01:00"},
		{"Berlin overlap: every minute of an hour", "*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T02:00+02:00 2026-10-25T02:30+02:00 2026-10-26T02:00+01:00"},
		{"Berlin overlap: hourly", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T02:30+02:00 2026-10-25T02:30+01:00 2026-10-25T03:30+01:00"},
		{"Berlin overlap: hourly, written as a range", "30 0-23 * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T02:30+02:00 2026-10-25T02:30+01:00 2026-10-25T03:30+01:00"},
		{"Berlin overlap: hourly, at its start", "0 * * * *", "Europe/Berlin", "2026-10-25T00:30Z", "2026-10-25T02:00+01:00 2026-10-25T03:00+01:00"},

		{"New York gap", "30 2 * * *", "America/New_York", "2026-03-07T12:00Z", "2026-03-08T03:00-04:00 2026-03-09T02:30-04:00"},
		{"New York gap: hourly", "0 * * * *", "America/New_York", "2026-03-08T06:30Z", "2026-03-08T03:00-04:00 2026-03-08T04:00-04:00"},
		{"New York overlap", "30 1 * * *", "America/New_York", "2026-10-31T12:00Z", "2026-11-01T01:30-04:00 2026-11-02T01:30-05:00"},
		{"New York overlap: hourly", "30 * * * *", "America/New_York", "2026-11-01T05:00Z", "2026-11-01T01:30-04:00 2026-11-01T01:30-05:00 2026-11-01T02:30-05:00"},

		// Lord Howe moves its clock by half an hour: 02:00 +10:30 becomes 02:30 +11:00 in spring.
		{"Lord Howe gap", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", "2026-10-04T02:30+11:00 2026-10-05T02:15+11:00"},
		{"Lord Howe gap: after it in the same hour", "45 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", "2026-10-04T02:45+11:00 2026-10-05T02:45+11:00"},
		{"Lord Howe gap: the hour after it", "0 3 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", "2026-10-04T03:00+11:00 2026-10-05T03:00+11:00"},
		{"Lord Howe gap: hourly", "0 * * * *", "Australia/Lord_Howe", "2026-10-04T01:30+10:30", "2026-10-04T03:00+11:00 2026-10-04T04:00+11:00"},
		{"Lord Howe gap: every 10 minutes", "*/10 * * * *", "Australia/Lord_Howe", "2026-10-04T01:45+10:30", "2026-10-04T01:50+10:30 2026-10-04T02:30+11:00 2026-10-04T02:40+11:00"},
		{"Lord Howe overlap", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00Z", "2026-04-05T01:45+11:00 2026-04-06T01:45+10:30"},
		{"Lord Howe overlap: its end", "0 2 * * *", "Australia/Lord_Howe", "2026-04-04T12:00Z", "2026-04-05T02:00+10:30 2026-04-06T02:00+10:30"},
		{"Lord Howe overlap: before it in the same hour", "15 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00Z", "2026-04-05T01:15+11:00 2026-04-06T01:15+10:30"},
		{"Lord Howe overlap: every 20 minutes", "*/20 * * * *", "Australia/Lord_Howe", "2026-04-05T01:30+11:00", "2026-04-05T01:40+11:00 2026-04-05T01:40+10:30 2026-04-05T02:00+10:30"},

		// São Paulo skipped midnight on 4 November 2018, and repeated the hour from 23:00 on 17
		// February 2018.
		{"São Paulo gap at midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00Z", "2018-11-04T01:00-02:00 2018-11-05T00:00-02:00"},
		{"São Paulo gap on a given day", "30 0 4 11 *", "America/Sao_Paulo", "2018-11-03T12:00Z", "2018-11-04T01:00-02:00 2019-11-04T00:30-03:00"},
		{"São Paulo gap on the first day of its week", "@weekly", "America/Sao_Paulo", "2018-11-03T12:00Z", "2018-11-04T01:00-02:00 2018-11-11T00:00-02:00"},
		{"São Paulo gap: hourly", "0 * * * *", "America/Sao_Paulo", "2018-11-04T02:30Z", "2018-11-04T01:00-02:00 2018-11-04T02:00-02:00"},
		{"São Paulo overlap before midnight", "30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00Z", "2018-02-17T23:30-02:00 2018-02-18T23:30-03:00"},
		{"São Paulo overlap, midnight", "0 0 * * *", "America/Sao_Paulo", "2018-02-17T12:00Z", "2018-02-18T00:00-03:00 2018-02-19T00:00-03:00"},
		{"São Paulo overlap, the last day", "30 23 17 2 *", "America/Sao_Paulo", "2018-02-17T12:00Z", "2018-02-17T23:30-02:00 2019-02-17T23:30-03:00"},

		// Apia skipped 30 December 2011 when Samoa moved across the date line.
		{"Apia's skipped day", "0 12 * * *", "Pacific/Apia", "2011-12-28T12:00-10:00", "2011-12-29T12:00-10:00 2011-12-31T00:00+14:00 2011-12-31T12:00+14:00"},
		{"Apia's skipped day, midnight", "0 0 * * *", "Pacific/Apia", "2011-12-28T12:00-10:00", "2011-12-29T00:00-10:00 2011-12-31T00:00+14:00 2012-01-01T00:00+14:00"},
		{"Apia's skipped day alone", "0 12 30 12 *", "Pacific/Apia", "2011-12-28T12:00-10:00", "2011-12-31T00:00+14:00 2012-12-30T12:00+14:00"},
		{"Apia's skipped day, hourly", "0 * * * *", "Pacific/Apia", "2011-12-29T22:30-10:00", "2011-12-29T23:00-10:00 2011-12-31T00:00+14:00"},
		{"Apia's skipped day alone, hourly", "0 * 30 12 *", "Pacific/Apia", "2011-12-28T12:00-10:00", "2012-12-30T00:00+14:00"},

		// Casablanca puts its clock back during Ramadan, in 2026 from 15 February to 22 March.
		{"Casablanca, Ramadan begins", "30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00Z", "2026-02-15T02:30+01:00 2026-02-16T02:30Z"},
		{"Casablanca, Ramadan ends", "30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00Z", "2026-03-22T03:00+01:00 2026-03-23T02:30+01:00"},

		// From 2038 on, the clock changes of zones follow a rule. See stretchAt for the special
		// case of 31 December.
		{"a leap year's last day, hourly", "30 * 1 1 *", "Europe/Berlin", "2040-12-31T12:00Z", "2041-01-01T00:30+01:00 2041-01-01T01:30+01:00"},
		{"a leap year's last day", "30 0 1 1 *", "Europe/Berlin", "2040-12-31T12:00Z", "2041-01-01T00:30+01:00 2042-01-01T00:30+01:00"},
		{"a gap by rule", "30 2 * * *", "Europe/Berlin", "2044-03-26T12:00Z", "2044-03-27T03:00+02:00 2044-03-28T02:30+02:00"},

		// Until 1972 Monrovia was 44 minutes and 30 seconds behind UTC.
		{"an offset with seconds", "0 12 * * *", "Africa/Monrovia", "1972-01-06T00:00Z", "1972-01-06T12:00:00-00:44 1972-01-07T12:00Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := mustParse(t, test.schedule, test.zone)
			want := strings.Fields(test.want)
			var got []time.Time
			for at := mustTime(t, test.after); len(got) < len(want); {
				next, ok := s.Next(at)
				if !ok {
					t.Fatalf("no tick after %s", at)
				}
				if next.Location() != time.UTC {
					t.Errorf("%s is not in UTC", next)
				}
				got = append(got, next)
				at = next
			}
			if diff := cmp.Diff(want, local(s, got)); diff != "" {
				t.Errorf("ticks of %s after %s (-want +got):\n%s", s, test.after, diff)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	type answer struct {
		Tick   string
		Missed int
		OK     bool
	}
	tests := []struct {
		name, schedule, zone, after, upTo string
		want                              answer
	}{
		{"none yet", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-11T02:59Z", answer{}},
		{"upTo is included", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-11T03:00Z", answer{"2026-01-11T03:00Z", 0, true}},
		{"upTo within the tick's second", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-11T03:00:00.5Z", answer{"2026-01-11T03:00Z", 0, true}},
		{"after is not included", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-10T04:00Z", answer{}},
		{"a clock that went back", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-09T04:00Z", answer{}},
		{"the same instant", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-10T03:00Z", answer{}},
		{"times in another zone", "0 3 * * *", "", "2026-01-10T12:00+05:00", "2026-01-11T07:59+05:00", answer{}},
		{"times in another zone, later", "0 3 * * *", "", "2026-01-10T12:00+05:00", "2026-01-11T08:01+05:00", answer{"2026-01-11T03:00Z", 0, true}},
		{"three nights", "0 3 * * *", "", "2026-01-10T03:00Z", "2026-01-13T09:00Z", answer{"2026-01-13T03:00Z", 2, true}},
		{"exactly as many as are counted", "* * * * *", "", "2026-01-10T00:00Z", "2026-01-10T16:40Z", answer{"2026-01-10T16:40Z", 999, true}},
		{"one more", "* * * * *", "", "2026-01-10T00:00Z", "2026-01-10T16:41Z", answer{"2026-01-10T16:41Z", 1000, true}},
		{"56 years of minutes", "* * * * *", "Europe/Berlin", "1970-01-01T00:00Z", "2026-07-01T00:00Z", answer{"2026-07-01T02:00+02:00", 1000, true}},
		{"since the year 1", "0 3 * * *", "Europe/Berlin", "0001-01-01T00:00Z", "2026-07-01T12:00Z", answer{"2026-07-01T03:00+02:00", 1000, true}},
		{"a leap year's last day, hourly", "30 * 1 1 *", "Europe/Berlin", "2040-12-30T12:00Z", "2041-01-01T00:00Z", answer{"2041-01-01T00:30+01:00", 0, true}},
		{"before the year 1", "0 * * * *", "Europe/Berlin", "-", "2026-07-01T12:00Z", answer{"2026-07-01T14:00+02:00", 1000, true}},
		{"the gap's end", "0,15,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T12:00Z", answer{"2026-03-29T03:00+02:00", 0, true}},
		{"before the gap's end", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T00:59Z", answer{}},
		{"the second pass", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T02:45+01:00", answer{"2026-10-25T02:30+02:00", 0, true}},
		{"the second pass, hourly", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T02:45+01:00", answer{"2026-10-25T02:30+01:00", 1, true}},
		{"between the passes, hourly", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T02:15+01:00", answer{"2026-10-25T02:30+02:00", 0, true}},
		{"29 February", "0 0 29 2 *", "", "2090-01-01T00:00Z", "2104-02-28T00:00Z", answer{"2096-02-29T00:00Z", 1, true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := mustParse(t, test.schedule, test.zone)
			after := time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC) // The table's time format cannot represent this year.
			if test.after != "-" {
				after = mustTime(t, test.after)
			}
			tick, missed, ok := s.Latest(after, mustTime(t, test.upTo))
			got := answer{Missed: missed, OK: ok}
			if ok {
				if tick.Location() != time.UTC {
					t.Errorf("%s is not in UTC", tick)
				}
				got.Tick = tick.In(s.location).Format(layout)
			} else if !tick.IsZero() {
				t.Errorf("returned false with the tick %s", tick)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("latest tick of %s in (%s, %s] (-want +got):\n%s", s, test.after, test.upTo, diff)
			}
		})
	}
}

func TestLatestBeforeTheYear1(t *testing.T) {
	s := mustParse(t, "0 * * * *", "Europe/Berlin")
	upTo := time.Date(-10, 1, 1, 0, 30, 0, 0, time.UTC)
	if tick, missed, ok := s.Latest(upTo.Add(-90*time.Minute), upTo); !ok || missed != 1 || tick.After(upTo) {
		t.Errorf("Latest up to %s is %s, %d, %t, want the second of two ticks", upTo, tick, missed, ok)
	}
}

// TestMonotonicClock checks that a tick has no monotonic clock reading, even if it is computed from
// time.Now. Otherwise the operator == would not report two equal ticks as equal.
func TestMonotonicClock(t *testing.T) {
	s := mustParse(t, "* * * * *", "Europe/Berlin")
	now := time.Now()
	with, _ := s.Next(now)
	without, _ := s.Next(now.Round(0))
	if with != without {
		t.Errorf("Next(%s) is %#v, and without the monotonic clock %#v", now, with, without)
	}
	with, _, _ = s.Latest(now.Add(-time.Hour), now)
	without, _, _ = s.Latest(now.Add(-time.Hour).Round(0), now.Round(0))
	if with != without {
		t.Errorf("Latest up to %s is %#v, and without the monotonic clock %#v", now, with, without)
	}
}

// TestStretches checks that a walk from stretch to stretch, the periods without a clock change,
// makes progress in both directions.
func TestStretches(t *testing.T) {
	for _, zone := range testZones {
		location, err := Zone(zone)
		if err != nil {
			t.Fatal(err)
		}
		at := stretchAt(location, epoch)
		for !at.end.IsZero() && at.end.Year() < 2200 {
			next := stretchAt(location, at.end)
			if !next.end.IsZero() && !next.end.After(at.end) {
				t.Fatalf("%s: the stretch at %s ends at %s", zone, at.end, next.end)
			}
			last := stretchAt(location, at.end.Add(-1))
			if !last.start.Before(at.end) || last.end.Before(at.end) || last.offset != at.offset {
				t.Fatalf("%s: the last instant before %s is in %v, want the clock of %v", zone, at.end, last, at)
			}
			at = next
		}
	}
}

func TestNames(t *testing.T) {
	tests := []struct{ expression, zone, wantZone, want string }{
		{"0 3 * * *", "", "UTC", "0 3 * * * UTC"},
		{"  0\t3 *  * * ", "Europe/Berlin", "Europe/Berlin", "0 3 * * * Europe/Berlin"},
		{"@daily", "Etc/GMT+1", "Etc/GMT+1", "@daily Etc/GMT+1"},
	}
	for _, test := range tests {
		s := mustParse(t, test.expression, test.zone)
		if diff := cmp.Diff([]string{test.wantZone, test.want}, []string{s.Zone(), s.String()}); diff != "" {
			t.Errorf("Zone and String of %q in %q (-want +got):\n%s", test.expression, test.zone, diff)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	after := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, bench := range []struct{ name, expression, zone string }{
		{"nightly", "0 3 * * *", "Europe/Berlin"},
		{"nightly UTC", "0 3 * * *", ""},
		{"every 5 minutes", "*/5 * * * *", "Europe/Berlin"},
		{"yearly", "0 0 1 3 *", "Europe/Berlin"},
		{"29 February", "0 0 29 2 *", "Europe/Berlin"},
		{"29 February hourly", "0 * 29 2 *", "Africa/Casablanca"},
	} {
		s := mustParse(b, bench.expression, bench.zone)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Next(after)
			}
		})
	}
}

func BenchmarkLatestAfterAYear(b *testing.B) {
	upTo := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	s := mustParse(b, "* * * * *", "Europe/Berlin")
	b.ReportAllocs()
	for b.Loop() {
		s.Latest(upTo.AddDate(-1, 0, 0), upTo)
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustParse(b, "0 3 * * *", "Europe/Berlin")
	}
}
