// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// Ticks of the same time with the same outcome and reason are shown together; restarts that
// succeed or are in progress at the end are not shown.
func TestUnservedIn(t *testing.T) {
	at := func(minute int) forecast.Tick {
		return forecast.Tick{Tick: noon.Add(time.Duration(minute) * time.Minute), Name: fmt.Sprint(minute)}
	}
	with := func(t forecast.Tick, outcome tidekeeperv1.Outcome, reason, message string) forecast.Tick {
		t.Outcome, t.Reason, t.Message = outcome, reason, message
		return t
	}
	earlier := with(at(1), tidekeeperv1.OutcomeMissed, "TargetPaused", "a is paused")
	earlier.EarlierTicks = 4
	f := &forecast.Forecast{
		Started: []forecast.Tick{
			with(at(0), tidekeeperv1.OutcomeSucceeded, "", ""), at(0),
			with(at(2), tidekeeperv1.OutcomeFailed, "Timeout", "not complete"),
		},
		NotStarted: []forecast.Tick{
			with(at(3), tidekeeperv1.OutcomeMissed, "BudgetExhausted", "used up"), with(at(3), tidekeeperv1.OutcomeMissed, "BudgetExhausted", "used up"),
			earlier, with(at(1), tidekeeperv1.OutcomeMissed, "TargetPaused", "b is paused"),
		},
		Waiting: []forecast.Tick{with(at(4), "", "TargetRolling", "c rolls")},
	}
	var got []string
	for _, u := range UnservedIn(f) {
		got = append(got, fmt.Sprintf("%s %d of %d: %s: %s %v", u.Tick.Format("15:04"), u.Count, len(u.Ticks), u.Outcome.Text, u.Message, u.Alike))
	}
	if diff := cmp.Diff([]string{
		"12:01 6 of 2: Missed/TargetPaused: a is paused false",
		"12:02 1 of 1: Failed/Timeout: not complete true",
		"12:03 2 of 2: Missed/BudgetExhausted: used up true",
		"12:04 1 of 1: Waiting/TargetRolling: c rolls true",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
