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

// TestSummerTimeWhileActive changes the time zone to summer time during a restart, with a tick in
// the skipped hour. It then changes back to winter time, with a tick in the repeated hour.
func TestSummerTimeWhileActive(t *testing.T) {
	s := newFixture(t, "30 2 * * *", 3*time.Second)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	spring, autumn := change(t, berlin, time.March), change(t, berlin, time.October)

	// The clock stands still, so that the tick is not due before the request is accepted,
	// regardless of how long that takes.
	clock := framework.NewStandingClock(t, spring.Add(-time.Hour))
	s.start(t, clock)
	s.Change(t, s.restart, func() { s.restart.Spec.TimeZone = "Europe/Berlin" })
	s.enable(t)
	clock.Set(t, spring.Add(-2*time.Second))
	request := s.RequestRestart(t, s.restart, spring.Add(-2*time.Second))
	s.eventuallySent(t, 1)
	clock = clock.Going()
	s.clock = clock
	clock.Set(t, spring.Add(-time.Second))
	history := []string{succeeded(spring), succeeded(request)}
	s.eventually(t, "a tick in the gap comes at its end, after the restart that was under way", history...)

	first := autumn.Add(-30 * time.Minute)
	clock.Set(t, first.Add(-time.Hour))
	framework.Eventually(t, "the next tick is in autumn", func() error {
		s.Refresh(t, s.restart)
		if next := s.restart.Status.NextScheduleTime; next == nil || !next.Time.Equal(first) {
			return fmt.Errorf("the next tick is %s, want %s", next, first)
		}
		return nil
	})
	missed := len(s.restart.Status.History)
	clock.Set(t, first.Add(-time.Second))
	s.eventuallySent(t, 3)
	clock.Set(t, autumn.Add(-time.Second))
	framework.Eventually(t, "the tick in the hour that occurs twice has run", func() error {
		s.Refresh(t, s.restart)
		if len(s.restart.Status.History) != missed+1 || s.restart.Status.Active != nil {
			return fmt.Errorf("status %+v", s.restart.Status)
		}
		return nil
	})
	if r := s.restart.Status.History[0]; !r.ScheduledTime.Time.Equal(first) || r.Outcome != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("the record is %+v; want that %s succeeded", r, first)
	}
	clock.Set(t, autumn.Add(30*time.Minute-time.Second))
	s.awaitMarker(t)
	s.Refresh(t, s.restart)
	if got := len(s.restart.Status.History); got != missed+1 {
		t.Errorf("the tick ran a second time: %+v", s.restart.Status.History)
	}
	s.sent(t, nil)
}

// change returns the time at which the zone changes its offset in the given month of next year.
func change(t *testing.T, zone *time.Location, month time.Month) time.Time {
	t.Helper()
	_, end := time.Date(time.Now().Year()+1, month, 1, 0, 0, 0, 0, zone).ZoneBounds()
	if end.Month() != month {
		t.Fatalf("the clock of %s changes on %s", zone, end)
	}
	return end
}
