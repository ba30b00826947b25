// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// spreadOver returns a ScheduledRestart with a spread of the given number of seconds, in the state
// that an earlier version of the manager left behind.
func spreadOver(name string, window int32, next time.Time) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name), Generation: 1},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: "0 3 * * *", TimeZone: "UTC",
			SpreadSeconds: window, StartingDeadlineSeconds: 900, ProgressDeadlineSeconds: 1800, FailureLimit: 3, HistoryLimit: 10,
		},
		Status: tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1, NextScheduleTime: &metav1.Time{Time: next}},
	}
}

func TestOffsetOf(t *testing.T) {
	tick := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	due, before := tick.Add(time.Minute), tick.Add(-time.Minute)
	place := schedule.Spread("shop", "web", time.Hour)
	byUID := schedule.SpreadByUID("uid of web", time.Hour)
	given := func(start time.Time) func(*tidekeeperv1.ScheduledRestart) {
		return func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextStartTime = &metav1.Time{Time: start} }
	}
	for name, tt := range map[string]struct {
		change func(*tidekeeperv1.ScheduledRestart)
		now    time.Time
		want   time.Duration
	}{
		"not due, of an earlier version": {now: before, want: place},
		"due, of an earlier version":     {now: due, want: byUID},
		"due, with its start":            {change: given(tick.Add(7 * time.Second)), now: due, want: 7 * time.Second},
		"not due, with another start":    {change: given(tick.Add(7 * time.Second)), now: before, want: place},
		"a start before the tick":        {change: given(tick.Add(-time.Second)), now: due, want: place},
		"a start out of the window":      {change: given(tick.Add(time.Hour)), now: due, want: place},
		"the spec was edited":            {change: func(r *tidekeeperv1.ScheduledRestart) { r.Generation++ }, now: due, want: place},
		"no tick":                        {change: func(r *tidekeeperv1.ScheduledRestart) { r.Status.NextScheduleTime = nil }, now: due, want: place},
		"no spread":                      {change: func(r *tidekeeperv1.ScheduledRestart) { r.Spec.SpreadSeconds = 0 }, now: due, want: 0},
	} {
		r := spreadOver("web", 3600, tick)
		if tt.change != nil {
			tt.change(r)
		}
		if got := Offset(r, tt.now); got != tt.want {
			t.Errorf("%s: starts %s after the tick, want %s", name, got, tt.want)
		}
	}
}

// TestSpreadIsKeptOverAnUpgrade checks an upgrade of the manager at any time of the night. The
// restart for the tick must start once, before its deadline according to the old or new offset, and
// the tick of the next night must have the new offset.
func TestSpreadIsKeptOverAnUpgrade(t *testing.T) {
	tick := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for i := range 20 {
		name := fmt.Sprint("web-", i)
		const window = 3600
		byUID := schedule.SpreadByUID("uid of "+name, window*time.Second)
		for upgrade := -10 * time.Minute; upgrade < 70*time.Minute; upgrade += 90 * time.Second {
			r := spreadOver(name, window, tick)
			place := place(r)
			if upgrade > byUID {
				// The earlier version has already started the restart for the tick.
				r.Status.NextScheduleTime = &metav1.Time{Time: tick.AddDate(0, 0, 1)}
			}
			started := map[time.Time]time.Time{}
			ticks, err := schedule.Parse(string(r.Spec.Schedule), r.Spec.TimeZone)
			if err != nil {
				t.Fatal(err)
			}
			// The new manager makes decisions only at the wake-up times of its previous decisions.
			for now, looks := tick.Add(upgrade), 0; now.Before(tick.AddDate(0, 0, 1).Add(90 * time.Minute)); looks++ {
				if looks > 50 {
					t.Fatalf("%s, upgraded at %s: it does not sleep", name, upgrade)
				}
				offset := Offset(r, now)
				d := Decide(Input{Restart: r, Ticks: ticks, Offset: offset, Target: makeInputs().Target, PodStartups: []time.Duration{}, HasSlot: true, Now: now})
				r.Status = d.Status
				if active := d.Status.Active; active != nil {
					if _, twice := started[active.ScheduledTime.UTC()]; twice {
						t.Fatalf("%s, upgraded at %s: %s is started twice", name, upgrade, active.ScheduledTime)
					}
					started[active.ScheduledTime.UTC()] = now
					r.Status.Active = nil // The restart completes immediately.
					now = now.Add(time.Second)
					continue
				}
				if d.Wake.IsZero() || !d.Wake.After(now) {
					t.Fatalf("%s, upgraded at %s: it never wakes after %s: %s", name, upgrade, now, d.Wake)
				}
				now = d.Wake
			}
			first, second := started[tick], started[tick.AddDate(0, 0, 1)]
			if upgrade <= byUID && (first.IsZero() || first.Sub(tick) > max(byUID, place)+90*time.Second) {
				t.Errorf("%s, upgraded at %s, %s by UID and %s by name: the tick is started at %s: %+v", name, upgrade, byUID, place, first, r.Status.History)
			}
			if got := second.Sub(tick.AddDate(0, 0, 1)); got != place {
				t.Errorf("%s, upgraded at %s: in the next night it is started %s after the tick, want %s", name, upgrade, got, place)
			}
		}
	}
}
