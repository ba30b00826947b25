// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestEnableAndEditMoveTheTicks enables a schedule, edits it and disables it again, without
// restarting the manager. The workload must be restarted at the first tick after each edit, and not
// at all while the schedule is disabled.
func TestEnableAndEditMoveTheTicks(t *testing.T) {
	s := newFixture(t, "0,6,58 * * * *", 0)
	// A second, never edited schedule also ticks at all of these minutes. When its restart has
	// completed, the manager has handled the tick.
	ticks := framework.Deployment("ticks", 1, framework.App)
	ticks.Namespace = s.namespace
	s.Apply(t, ticks)
	other := framework.ScheduledRestart("ticks")
	other.Namespace = s.namespace
	other.Spec = tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "ticks"}, Schedule: "0,2,4,6,8,58 * * * *", Suspend: true,
		Precondition: tidekeeperv1.PreconditionNone, ProgressDeadlineSeconds: 24 * 60 * 60,
	}
	s.Apply(t, other)

	at := func(minutes int) time.Time { return hour.Add(time.Duration(minutes) * time.Minute) }
	// The clock stands still until the other schedule is enabled, regardless of how long that takes.
	clock := framework.NewStandingClock(t, at(-3))
	s.start(t, clock)
	edit := func(change func(*tidekeeperv1.ScheduledRestartSpec), reason string) {
		t.Helper()
		s.Change(t, s.restart, func() { change(&s.restart.Spec) })
		s.eventuallyIs(t, reason)
	}
	// tick advances the clock to the tick at the given minute, and waits until the second
	// schedule's restart has completed.
	tick := func(minutes int) {
		t.Helper()
		clock.Set(t, at(minutes).Add(-time.Second))
		framework.Eventually(t, "the tick is over", func() error {
			s.Refresh(t, other)
			var last string
			if history := other.Status.History; len(history) > 0 {
				last = outcomeOf(history[0].ScheduledTime.Time, history[0].Outcome, history[0].Reason, 0)
			}
			if want := succeeded(at(minutes)); last != want {
				return fmt.Errorf("the last one is %q, want %q", last, want)
			}
			return nil
		})
	}
	s.eventuallyIs(t, "Suspended")
	s.Change(t, other, func() { other.Spec.Suspend = false })
	framework.Eventually(t, "the other schedule is enabled", func() error {
		s.Refresh(t, other)
		return framework.ReadyIs(other.Status.Conditions, other.Generation, "Scheduled")
	})
	clock = clock.Going()
	s.clock = clock

	tick(-2)
	s.eventually(t, "disabled")
	edit(func(spec *tidekeeperv1.ScheduledRestartSpec) { spec.Suspend = false }, "Scheduled")
	tick(0)
	history := []string{succeeded(at(0))}
	s.eventually(t, "enabled", history...)
	edit(func(spec *tidekeeperv1.ScheduledRestartSpec) { spec.Schedule = "2,4,8 * * * *" }, "Scheduled")
	tick(2)
	history = append([]string{succeeded(at(2))}, history...)
	s.eventually(t, "edited, at the new time", history...)
	tick(4)
	history = append([]string{succeeded(at(4))}, history...)
	s.eventually(t, "edited, at the next one", history...)
	tick(6)
	s.eventually(t, "edited, not at the old time", history...)
	edit(func(spec *tidekeeperv1.ScheduledRestartSpec) { spec.Suspend = true }, "Suspended")
	tick(8)
	s.eventually(t, "disabled again", history...)
}
