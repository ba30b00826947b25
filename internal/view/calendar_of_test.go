// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestCalendarOfAForecast checks that the calendar lists a start in the minute in which it starts,
// and a missed tick in the minute in which it is due.
func TestCalendarOfAForecast(t *testing.T) {
	deadline := func(r *tidekeeperv1.ScheduledRestart) {
		r.Spec.StartingDeadlineSeconds, r.Spec.ProgressDeadlineSeconds, r.UID = 600, 600, "u"
	}
	items := []tidekeeperv1.ScheduledRestart{
		aRestart("a", "0 13 * * *", deadline), aRestart("b", "0 13 * * *", deadline), aRestart("paused", "0 13 * * *", deadline),
		aRestart("frozen", "0 13 * * *", deadline, func(r *tidekeeperv1.ScheduledRestart) { r.Namespace = "cold" }),
		aRestart("off", "* * * * *", deadline, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true }),
		aRestart("busy", "@yearly", deadline, func(r *tidekeeperv1.ScheduledRestart) {
			r.Namespace = "other"
			r.Status.Active = &tidekeeperv1.ActiveRestart{Trigger: tidekeeperv1.TriggerSchedule, ScheduledTime: *at(noon.Add(-time.Minute)), StartedTime: *at(noon.Add(time.Second)), TargetUID: "w"}
		}),
	}
	in := forecast.Input{
		Targets: map[forecast.TargetKey]forecast.Target{}, Now: noon, Until: noon.Add(2 * time.Hour), MostListed: 100, AssumedDuration: 5 * time.Minute,
		// A namespace may use one of the two slots of the restart budget.
		Limits:  forecast.Limits{MaxConcurrent: 2, NamespaceShare: 50, SlotAge: time.Hour},
		Freezes: map[string][]period.Period{"cold": {{Name: "x", From: noon, Until: noon.Add(time.Hour + 20*time.Minute)}}},
	}
	for i := range items {
		r := &items[i]
		in.Restarts = append(in.Restarts, r)
		in.Targets[forecast.KeyOf(r.Namespace, r.Spec.TargetRef)] = forecast.Target{State: &workload.State{
			Kind: "Deployment", Name: r.Name, UID: "w", Pods: 1, Updates: 1, Rollout: workload.Progress{Available: true}, Availability: workload.Progress{Available: true}, Paused: r.Name == "paused",
		}}
	}
	busy := in.Targets[forecast.KeyOf("other", items[5].Spec.TargetRef)].State
	busy.RestartedAt, busy.LastTick = workload.FormatTime(noon.Add(-time.Minute)), workload.FormatTime(noon.Add(-time.Minute))
	busy.Rollout = workload.Progress{Updating: true}
	underWay := map[string]time.Time{"other/busy": noon.Add(-time.Minute)}
	f := forecast.Run(t.Context(), in)
	c := CalendarOf(&f, nil, underWay)
	var got []string
	for _, m := range c.Minutes {
		line := fmt.Sprintf("%s %d", m.Time.Format("15:04"), m.Count)
		for _, s := range m.Starts {
			line += " " + s.Name
		}
		for _, s := range m.NotStarted {
			line += fmt.Sprintf(" %s(%s %s)", s.Name, s.Outcome, s.Reason)
		}
		got = append(got, line)
	}
	for _, s := range c.UnderWay {
		got = append(got, "under way: "+s.Name)
	}
	want := []string{"13:00 1 a frozen(Missed Frozen) paused(Missed TargetPaused)", "13:05 1 b", "under way: busy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
