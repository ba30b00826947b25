// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNames checks that long names are cut in the middle, and that the complete name is available
// as well.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 100) + "-tail"
	for whole, want := range map[string]shownName{
		"web":            {"", "web", ""},
		"shop/web":       {"shop/", "web", ""},
		"prod: shop/web": {"prod: shop/", "web", ""},
		"a/b: shop/web":  {"a/b: shop/", "web", ""},
		"shop/" + long:   {"shop/", strings.Repeat("a", 26) + "…" + strings.Repeat("a", 8) + "-tail", "shop/" + long},
	} {
		if diff := cmp.Diff(want, nameOf(whole)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", whole, diff)
		}
	}
}

// TestTimesInMessages checks that timestamps in the manager's messages are displayed in words, with
// the exact time as a tooltip.
func TestTimesInMessages(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	want := []shownTime{
		{Text: "next restart at "}, {"tomorrow 04:00", "2026-11-23 04:00:00 CET", "2026-11-23T03:00:00Z"},
		{Text: ", as that of "}, {"today 11:30", "2026-11-22 11:30:00 CET", "2026-11-22T10:30:00Z"}, {Text: " was missed"},
	}
	got := wordedTimes("next restart at 2026-11-23T03:00:00Z, as that of 2026-11-22T11:30:00+01:00 was missed", noon, berlin)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "no time", "2026-99-99T03:00:00Z is none"} {
		var all string
		for _, part := range wordedTimes(text, noon, berlin) {
			all += part.Text
		}
		if all != text {
			t.Errorf("%q becomes %q", text, all)
		}
	}
}

// TestZoneBeside checks that a schedule's time zone is shown only if its local time differs from
// the page's.
func TestZoneBeside(t *testing.T) {
	for zone, want := range map[string]string{"UTC": "", "Etc/UTC": "", "Africa/Abidjan": "", "Europe/Berlin": "Europe/Berlin", "Nowhere": "Nowhere"} {
		if got := zoneBeside(zone, noon, time.UTC); got != want {
			t.Errorf("beside a schedule in %s there is %q, want %q", zone, got, want)
		}
	}
}
