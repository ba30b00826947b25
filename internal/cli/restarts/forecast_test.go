// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// started returns a tick whose restart starts the given number of minutes after noon.
func started(name string, minutes int) forecast.Tick {
	at := noon.Add(time.Duration(minutes) * time.Minute)
	return forecast.Tick{Namespace: "shop", Name: name, Start: at, Tick: at}
}

// paused returns a tick that is due the given number of minutes after noon and is missed because
// its Deployment is paused.
func paused(name string, minutes int) forecast.Tick {
	return forecast.Tick{
		Namespace: "shop", Name: name, Tick: noon.Add(time.Duration(minutes) * time.Minute), Outcome: tidekeeperv1.OutcomeMissed, Reason: "TargetPaused",
		Message: "Deployment " + name + " is paused",
	}
}

func TestForecastTables(t *testing.T) {
	f := forecast.Forecast{
		From: noon, Until: noon.Add(time.Hour),
		Minutes: []forecast.Minute{
			{Time: noon.Add(-time.Minute), Started: 1}, {Time: noon.Add(time.Minute), Started: 2, Waiting: 1}, {Time: noon.Add(5 * time.Minute), Started: 1},
		},
		Started:    []forecast.Tick{started("busy", -1), started("a", 1), started("b", 1)},
		NotStarted: []forecast.Tick{paused("c", 1), paused("b", 3), paused("c", 21), paused("c", 41)},
		Summary: forecast.Summary{
			Started: 4, Missed: 4, Assumed: 2, InProgress: 1, FirstStart: noon.Add(-time.Minute), LastCompletion: noon.Add(2 * time.Minute),
		},
	}
	if diff := cmp.Diff([]string{
		"DAY          TIME (UTC)   STARTS   WAITING   RESTARTS",
		"Sat 21 Nov   11:59        1        0         shop/busy (in progress)",
		"Sat 21 Nov   12:01        2        1         shop/a, shop/b",
		"Sat 21 Nov   12:05        1        0         not listed",
	}, lines(t, forecastTable(&f, true, time.UTC, term.Screen{}), term.Screen{})); diff != "" {
		t.Errorf("what starts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"TICK (UTC)    LAST          TICKS   OUTCOME               MESSAGE                  RESTARTS",
		"today 12:01   today 12:41   all 3   Missed/TargetPaused   Deployment c is paused   c",
		"today 12:03   -             1       Missed/TargetPaused   Deployment b is paused   b",
	}, lines(t, unservedTable(view.UnservedIn(&f), false, noon, time.UTC), term.Screen{})); diff != "" {
		t.Errorf("what does not (-want +got):\n%s", diff)
	}
	settings := view.SettingsOf(map[string]string{budget.FlagNamespaceShare: "50", budget.FlagSlotAge: "10m0s"})
	o := forecastOptions{settings: settings, assume: cmdutil.Duration{Duration: time.Minute}}
	if diff := cmp.Diff([]string{
		"4 restarts, from today 11:59 until today 12:02: 3m. 4 ticks will be missed. 1 restart in progress at the end.",
		"Assumed: workloads stay as they are, --max-concurrent-restarts 20, 1m for 2 restarts without a success in the history (--assume-duration).",
		"No restart will start until today 13:00. Nothing will be missed.",
	}, []string{summaryText(&f, time.UTC), o.assumedText(&f), summaryText(&forecast.Forecast{From: noon, Until: noon.Add(time.Hour)}, time.UTC)}); diff != "" {
		t.Errorf("in words (-want +got):\n%s", diff)
	}
}

// TestHangingText checks that the note about hanging rollouts names a few workloads and the reasons.
func TestHangingText(t *testing.T) {
	var all []forecast.Hanging
	for i, want := range []string{
		"",
		"1 rollout without progress, assumed to stay so: Deployment/a of shop (1 of 3 pods are updated)",
		"2 rollouts without progress, assumed to stay so: Deployment/a of shop (1 of 3 pods are updated), Deployment/b of shop (1 of 3 pods are updated)",
		"",
		"4 rollouts without progress, assumed to stay so: Deployment/a of shop (1 of 3 pods are updated), Deployment/b of shop (1 of 3 pods are updated), " +
			"Deployment/c of shop (1 of 3 pods are updated), and 1 more",
	} {
		if got := hangingText(all); got != want && i != 3 {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
		all = append(all, forecast.Hanging{Namespace: "shop", Target: "Deployment/" + string(rune('a'+i)), Message: "1 of 3 pods are updated"})
	}
}
