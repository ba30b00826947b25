// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAnswersAreThoseOfANewSchedule checks that earlier calls of a schedule's methods do not affect
// later results.
func TestAnswersAreThoseOfANewSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, s, at := drawSchedule(t)
		for range rapid.IntRange(1, 20).Draw(t, "questions") {
			fresh, err := Parse(s.expression, s.Zone())
			if err != nil {
				t.Fatal(err)
			}
			var got, want time.Time
			var ok, wantOK bool
			question := rapid.SampledFrom([]string{"next", "last"}).Draw(t, "question")
			if question == "next" {
				got, ok = s.Next(at)
				want, wantOK = fresh.Next(at)
			} else {
				got, ok = s.last(at)
				want, wantOK = fresh.last(at)
			}
			if !got.Equal(want) || ok != wantOK {
				t.Fatalf("%s: %s of %s is %s, %t; a new schedule says %s, %t", s, question, at, got, ok, want, wantOK)
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				at = got
			case 1:
				at = got.Add(time.Duration(rapid.Int64Range(-2, 2).Draw(t, "beside")))
			case 2:
				at = at.Add(time.Duration(rapid.Int64Range(-int64(48*time.Hour), int64(48*time.Hour)).Draw(t, "elsewhere")))
			}
			at = at.UTC()
		}
	})
}

// TestATickCostsOneSearch checks that all lookups between two ticks together cost no more than a
// single search.
func TestATickCostsOneSearch(t *testing.T) {
	s := mustParse(t, "7 3 * * *", "Europe/Berlin")
	tick, _ := s.Next(utc(t, "2026-06-10 00:00"))
	s.Next(tick)
	s.last(tick)
	before := testing.AllocsPerRun(1, func() { s.findNext(tick) })
	asked := testing.AllocsPerRun(100, func() {
		for _, at := range []time.Time{tick, tick.Add(time.Second), tick.Add(time.Hour)} {
			s.Next(at)
			s.last(at)
			if _, _, ok := s.Latest(tick, at); ok {
				t.Error("there is another tick")
			}
		}
	})
	if asked > before {
		t.Errorf("nine questions between two ticks allocate %v times, and a search %v times", asked, before)
	}
	if known := s.recent.Load(); known == nil || !known.fromTick || !known.toTick {
		t.Errorf("the schedule knows %+v, and not both ticks", known)
	}
}
