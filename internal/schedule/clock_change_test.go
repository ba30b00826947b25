// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"
)

// TestClockChangesOfAYear checks in several zones that ClockChange describes the first tick after a
// clock change, and returns "" for ticks without a clock change nearby.
func TestClockChangesOfAYear(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo"} {
		ticks, err := Parse("*/30 * * * *", zone)
		if err != nil {
			t.Fatal(err)
		}
		in := ticks.Location()
		offsetAt := func(at time.Time) time.Duration { return stretchAt(in, at).offset }
		before := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for before.Year() == 2026 {
			tick, _ := ticks.Next(before)
			mark := ticks.ClockChange(tick, before)
			far := offsetAt(tick.Add(-3*time.Hour)) == offsetAt(tick) && offsetAt(tick.Add(3*time.Hour)) == offsetAt(tick)
			if far && mark != "" {
				t.Errorf("%s: %s is marked %q", zone, tick.In(in), mark)
			}
			if offsetAt(before) != offsetAt(tick) && mark == "" {
				t.Errorf("%s: %s is the first tick after a clock change, but is not marked", zone, tick.In(in))
			}
			before = tick
		}
	}
}
