// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestOverdue checks that a nightly schedule whose restarts fail is reported as overdue from the
// second night on, until one succeeds.
func TestOverdue(t *testing.T) {
	s := newFixture(t, "0 3 * * *", 0)
	s.Change(t, s.restart, func() { s.restart.Spec.ProgressDeadlineSeconds = 600 })
	s.Delete(t, s.deployment)
	night := time.Date(time.Now().Year()+1, 5, 4, 3, 0, 0, 0, time.UTC)
	c := framework.NewClock(t, night.Add(-time.Hour))
	manager := s.start(t, c)
	overdue := func(what string, want float64) {
		t.Helper()
		framework.Eventually(t, what, func() error {
			got := 0.0
			for _, metric := range manager.ReadMetrics(t)["tidekeeper_restart_overdue"].GetMetric() {
				if metric.GetLabel()[0].GetValue() == s.namespace {
					got = metric.GetGauge().GetValue()
				}
			}
			if got != want {
				return fmt.Errorf("%v are overdue, want %v", got, want)
			}
			return nil
		})
	}
	records := func(want int) {
		t.Helper()
		framework.Eventually(t, "the night is on record", func() error {
			s.Refresh(t, s.restart)
			if got := len(s.restart.Status.History); got != want {
				return fmt.Errorf("%d are: %+v", got, s.restart.Status)
			}
			return nil
		})
	}
	s.eventuallyIs(t, "TargetNotFound")
	s.Change(t, s.restart, func() { s.restart.Spec.Suspend = false })
	framework.Eventually(t, "the schedule runs", func() error {
		if s.Refresh(t, s.restart); s.restart.Status.NextScheduleTime == nil {
			return fmt.Errorf("status %+v", s.restart.Status)
		}
		return nil
	})
	overdue("nothing is overdue before the first night", 0)

	c.Set(t, night.Add(time.Hour))
	records(1)
	overdue("nothing is overdue after the first night", 0)
	night = night.AddDate(0, 0, 1)
	c.Set(t, night.Add(5*time.Minute))
	records(2)
	overdue("nothing is overdue while the second night's restart has time", 0)
	c.Set(t, night.Add(12*time.Minute))
	overdue("it is overdue after the second night", 1)

	// Another manager also reports the schedule as overdue.
	manager.Stop(t)
	manager = s.start(t, c)
	overdue("it is overdue for the next manager", 1)
	s.deployment.ResourceVersion, s.deployment.UID = "", ""
	s.Apply(t, s.deployment)
	c.Set(t, night.AddDate(0, 0, 1).Add(time.Second))
	framework.Eventually(t, "the third night's restart has succeeded", func() error {
		if s.Refresh(t, s.restart); s.restart.Status.LastSuccessfulTime == nil {
			return fmt.Errorf("status %+v", s.restart.Status)
		}
		return nil
	})
	overdue("it is no longer overdue", 0)
}
