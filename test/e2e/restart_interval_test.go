// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// changes edits the Secret, and waits until the manager has either restarted the workload for the
// edit or delayed the restart by the minimum interval.
func (s *storm) changes(t *testing.T) {
	t.Helper()
	cluster.Refresh(t, s.restart)
	hash := s.restart.Status.ConfigHash
	s.write(t)
	s.eventuallyServed(t, hash)
}

// waitsUntil fails the test unless the status reports that a restart for a change waits until
// `next`, and that the last restart for a change was started at `last`.
func (s *storm) waitsUntil(t *testing.T, next time.Time, last *metav1.Time, why string) {
	t.Helper()
	cluster.Refresh(t, s.restart)
	status := s.restart.Status
	if !status.LastChangeTime.Equal(last) {
		t.Errorf("%s: the last restart for a change was started at %s, want %s", why, status.LastChangeTime, last)
	}
	if status.NextChangeTime == nil || !status.NextChangeTime.Time.Equal(next) {
		t.Errorf("%s: the change waits until %s, want %s", why, status.NextChangeTime, next)
	}
}

// TestIntervalDelaysChangesOnly checks that only a restart for a configuration change starts the
// minimum interval between such restarts. A scheduled restart is not delayed by the interval and
// does not start another interval, but it also covers a waiting change. The interval must survive
// the removal of the history record, a change of the leader and edits of other fields. When the
// interval itself is edited, it still counts from the same restart.
func TestIntervalDelaysChangesOnly(t *testing.T) {
	const interval = 10 * time.Minute
	s, manager := newStorm(t, "interval")
	r := s.restart
	cluster.Change(t, r, func() { r.Spec.HistoryLimit = 1 })
	s.changes(t)
	eventuallyChanged(t, r, 0, tidekeeperv1.OutcomeSucceeded, "")
	first := r.Status.LastChangeTime
	if started := r.Status.History[0].StartedTime; first == nil || !first.Equal(started) {
		t.Fatalf("the restart was started at %s, and lastChangeTime is %s", started, first)
	}
	s.changes(t)
	s.waitsUntil(t, first.Add(interval), first, "a second change")

	tick := s.clock.Now(t).Add(3 * time.Minute).Truncate(time.Minute).UTC()
	cluster.Change(t, r, func() {
		r.Spec.FailureLimit = 5
		r.Spec.Schedule = tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", tick.Minute(), tick.Hour()))
	})
	manager.Kill(t)
	s.start(t)
	eventuallyRestart(t, r, framework.Patience, "has its tick", func() error {
		if next := r.Status.NextScheduleTime; next == nil || !next.Time.Equal(tick) || r.Status.ObservedGeneration != r.Generation {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	s.waitsUntil(t, first.Add(interval), first, "after an edit of other fields, and for the next leader")

	s.clock.Set(t, tick)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	eventuallyRestart(t, r, framework.Patience, "has nothing that waits", func() error {
		if r.Status.NextChangeTime != nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	if record := r.Status.History[0]; record.Trigger != tidekeeperv1.TriggerSchedule || len(r.Status.History) != 1 {
		t.Errorf("the history is %+v, want the tick alone", r.Status.History)
	}

	s.changes(t)
	s.waitsUntil(t, first.Add(interval), first, "a change after the tick")
	generation := func() int64 {
		cluster.Refresh(t, s.deployment)
		return s.deployment.Generation
	}
	before := generation()
	s.clock.Set(t, first.Add(interval-time.Second))
	// Once a restart requested for the clock's current time has completed, the manager has seen
	// that time.
	workload(t, "Deployment", "interval-other")
	other := suspendedRestart(t, "interval-other")
	eventuallyOutcome(t, other, cluster.RequestRestart(t, other, s.clock.Now(t)), tidekeeperv1.OutcomeSucceeded, "")
	if after := generation(); after != before {
		t.Error("it was restarted before the interval had passed")
	}
	s.clock.Set(t, first.Add(interval))
	eventuallyChanged(t, r, 0, tidekeeperv1.OutcomeSucceeded, "")

	second := r.Status.LastChangeTime
	s.changes(t)
	s.waitsUntil(t, second.Add(interval), second, "a change after the second restart for one")
	for _, edited := range []time.Duration{time.Hour, time.Minute} {
		cluster.Change(t, r, func() { r.Spec.MinIntervalSeconds = int32(edited / time.Second) })
		eventuallyRestart(t, r, framework.Patience, fmt.Sprint("has an interval of ", edited), func() error {
			if next := r.Status.NextChangeTime; next == nil || !next.Time.Equal(second.Add(edited)) {
				return fmt.Errorf("status %+v", r.Status)
			}
			return nil
		})
	}
	s.clock.Set(t, second.Add(time.Minute))
	eventuallyRestart(t, r, framework.Patience, "is restarted after the interval as it was edited last", func() error {
		if !second.Before(r.Status.LastChangeTime) {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
}
