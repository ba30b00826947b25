// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// TestUnservedIn checks that all missed ticks of a workload form one entry, and that
// ScheduledRestarts that miss the same tick for the same reason share an entry. Restarts that
// succeed, or are in progress at the end, have no entry.
func TestUnservedIn(t *testing.T) {
	tick := func(name string, minute int, outcome tidekeeperv1.Outcome, reason, message string) forecast.Tick {
		return forecast.Tick{Namespace: "shop", Name: name, Tick: noon.Add(time.Duration(minute) * time.Minute), Outcome: outcome, Reason: reason, Message: message}
	}
	f := &forecast.Forecast{Started: []forecast.Tick{
		tick("fine", 0, tidekeeperv1.OutcomeSucceeded, "", ""), tick("busy", 0, "", "", ""),
		tick("slow", 2, tidekeeperv1.OutcomeFailed, "Timeout", "not complete"), tick("often", 3, tidekeeperv1.OutcomeSucceeded, "", ""),
	}}
	for i := range 720 {
		broken := tick("broken", 2*i, tidekeeperv1.OutcomeMissed, "TargetUnhealthy", "broken is not healthy")
		if i == 1 {
			broken.EarlierTicks = 4
		}
		twin := broken
		twin.Name = "twin"
		f.NotStarted = append(f.NotStarted, broken, twin)
	}
	f.NotStarted = append(f.NotStarted,
		tick("a", 3, tidekeeperv1.OutcomeMissed, "BudgetExhausted", "used up"), tick("b", 3, tidekeeperv1.OutcomeMissed, "BudgetExhausted", "used up by others"),
		tick("often", 4, tidekeeperv1.OutcomeMissed, "BudgetExhausted", "used up"), tick("often", 5, tidekeeperv1.OutcomeSkipped, "Frozen", "a freeze"))
	f.Waiting = []forecast.Tick{tick("c", 6, "", "TargetRolling", "c rolls"), tick("broken", 1440, "", "TargetUnhealthy", "broken is not healthy"), tick("twin", 1440, "", "TargetUnhealthy", "broken is not healthy")}
	shown := func() []string {
		var got []string
		for _, u := range UnservedIn(f) {
			var names []string
			for _, r := range u.Restarts {
				names = append(names, r.Name)
			}
			got = append(got, fmt.Sprintf("%s to %s, %s ticks of %s: %s: %s %v", u.First.Format("15:04"), u.Last.Format("15:04"), u.CountText(), names, u.Outcome.Text, u.Message, u.Alike))
		}
		return got
	}
	want := []string{
		"12:00 to 11:58, all 1448, 2 waiting ticks of [broken twin]: Missed/TargetUnhealthy: broken is not healthy true",
		"12:02 to 12:02, 1 ticks of [slow]: Failed/Timeout: not complete true",
		"12:03 to 12:03, 2 ticks of [a b]: Missed/BudgetExhausted: used up false",
		"12:04 to 12:04, 1 ticks of [often]: Missed/BudgetExhausted: used up true",
		"12:05 to 12:05, 1 ticks of [often]: Skipped/Frozen: a freeze true",
		"12:06 to 12:06, 1 ticks of [c]: Waiting/TargetRolling: c rolls true",
	}
	if diff := cmp.Diff(want, shown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The ticks that are not listed may include others of the same ScheduledRestart.
	f.Summary.Unlisted = 1
	want[0] = strings.Replace(want[0], "all ", "", 1)
	if diff := cmp.Diff(want, shown()); diff != "" {
		t.Errorf("with ticks that are not listed (-want +got):\n%s", diff)
	}
}
