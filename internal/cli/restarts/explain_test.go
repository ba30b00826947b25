// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/view"
)

func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		name, expression, zone, from string
		want                         []string // the first lines
	}{
		{"the gap of spring", "30 2 * * *", "Europe/Berlin", "2027-03-27", []string{
			"at 02:30, every day (Europe/Berlin)",
			"Sat 27 Mar 2027 02:30 CET | 2027-03-27T01:30:00Z | ",
			"Sun 28 Mar 2027 03:00 CEST | 2027-03-28T01:00:00Z | 02:00 to 02:59 do not exist: runs at their end",
			"Mon 29 Mar 2027 02:30 CEST | 2027-03-29T00:30:00Z | ",
		}},
		{"the overlap of autumn, once", "30 2 * * *", "Europe/Berlin", "2026-10-25", []string{
			"at 02:30, every day (Europe/Berlin)",
			"Sun 25 Oct 2026 02:30 CEST | 2026-10-25T00:30:00Z | 02:30 for the first time of two",
			"Mon 26 Oct 2026 02:30 CET | 2026-10-26T01:30:00Z | the clock was put back by 1h on 25 Oct",
		}},
		{"an interval goes on through the overlap", "30 * * * *", "Europe/Berlin", "2026-10-25T02:00", []string{
			"at :30 of every hour, every day (Europe/Berlin)",
			"Sun 25 Oct 2026 02:30 CEST | 2026-10-25T00:30:00Z | 02:30 for the first time of two",
			"Sun 25 Oct 2026 02:30 CET | 2026-10-25T01:30:00Z | 02:30 for the second time: the clock was put back",
			"Sun 25 Oct 2026 03:30 CET | 2026-10-25T02:30:00Z | ",
		}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03", []string{
			"at 02:15, every day (Australia/Lord_Howe)",
			"Sat 3 Oct 2026 02:15 +1030 | 2026-10-02T15:45:00Z | ",
			"Sun 4 Oct 2026 02:30 +11 | 2026-10-03T15:30:00Z | 02:00 to 02:29 do not exist: runs at their end",
		}},
		{"a weekly one after the change", "0 5 * * 1", "America/New_York", "2026-10-26", []string{
			"at 05:00, on Monday (America/New_York)",
			"Mon 26 Oct 2026 05:00 EDT | 2026-10-26T09:00:00Z | ",
			"Mon 2 Nov 2026 05:00 EST | 2026-11-02T10:00:00Z | the clock was put back by 1h on 1 Nov",
			"Mon 9 Nov 2026 05:00 EST | 2026-11-09T10:00:00Z | ",
		}},
		{"no changes", "@daily", "", "2026-01-01", []string{
			"at 00:00, every day (UTC)",
			"Thu 1 Jan 2026 00:00 UTC | 2026-01-01T00:00:00Z | ",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ticks, err := schedule.Parse(tc.expression, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			from, err := parseTime(tc.from, ticks.Location())
			if err != nil {
				t.Fatal(err)
			}
			e := view.Explain(ticks, from.Add(-1), 10)
			got := []string{e.Words + " (" + e.Zone + ")"}
			for _, row := range explainTable(e.Ticks).Rows {
				var texts []string
				for _, c := range row {
					texts = append(texts, c.Text)
				}
				got = append(got, strings.Join(texts, " | "))
			}
			if len(got) != 11 {
				t.Errorf("%d ticks, want %d", len(got)-1, 10)
			}
			if diff := cmp.Diff(tc.want, got[:len(tc.want)]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"2027-03-26":                "2027-03-25T23:00:00Z",
		"2027-03-26 12:00":          "2027-03-26T11:00:00Z",
		"2027-03-26T12:00":          "2027-03-26T11:00:00Z",
		"2026-10-25T02:30":          "2026-10-25T00:30:00Z", // The local time occurs twice; the first instant counts.
		"2027-03-28T02:30":          "2027-03-28T01:00:00Z", // The local time is skipped; the end of the gap counts.
		"2027-03-26T12:00:00Z":      "2027-03-26T12:00:00Z",
		"2027-03-26T12:00:00-05:00": "2027-03-26T17:00:00Z",
		"tomorrow":                  "",
		"2027-13-01":                "",
	} {
		got, err := parseTime(text, berlin)
		if want == "" && err == nil || want != "" && (err != nil || got.UTC().Format(time.RFC3339) != want) {
			t.Errorf("%q: %s, %v; want %s", text, got.UTC(), err, want)
		}
	}
}
