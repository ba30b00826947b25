// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestWindow checks that restarts happen only within a window of two hours: at the schedule's ticks
// in the window and, if a restart is requested after the window, when the window opens again.
func TestWindow(t *testing.T) {
	s := newFixture(t, "30 * * * *", 0)
	at := func(hours float64) time.Time { return hour.Add(time.Duration(hours * float64(time.Hour))) }
	s.Change(t, s.restart, func() {
		s.restart.Spec.Windows = []tidekeeperv1.RestartWindow{{
			Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("0 %d * * *", at(2).Hour())), DurationSeconds: 2 * 60 * 60,
		}}
	})
	clock := framework.NewClock(t, at(0))
	s.start(t, clock)
	s.enable(t)
	if next := s.restart.Status.NextScheduleTime; next == nil || !next.Time.Equal(at(2.5)) {
		t.Errorf("the next tick is %s, want the first one in the window, %s", next, at(2.5))
	}
	s.says(t, "the tick of "+at(1.5).Format(time.RFC3339)+" before it is outside all windows")

	clock.Set(t, at(0.5).Add(-time.Second))
	s.stays(t, "a tick before the window")
	clock.Set(t, at(2.5).Add(-time.Second))
	history := []string{succeeded(at(2.5))}
	s.eventually(t, "a tick in the window", history...)
	clock.Set(t, at(3.5).Add(-time.Second))
	history = append([]string{succeeded(at(3.5))}, history...)
	s.eventually(t, "another tick in the window", history...)
	clock.Set(t, at(4.5).Add(-time.Second))
	s.stays(t, "a tick after the window", history...)

	request := s.RequestRestart(t, s.restart, at(4.5))
	s.eventuallyIs(t, "WindowClosed")
	s.says(t, "the next one opens at "+at(26).Format(time.RFC3339))
	clock.Set(t, at(25.5).Add(-time.Second))
	s.stays(t, "a request that waits for a day", history...)
	clock.Set(t, at(26).Add(-time.Second))
	s.eventually(t, "the window opens", append([]string{succeeded(request)}, history...)...)
}

// TestWindowTooShort checks that no restart starts in a window whose remaining time is shorter than
// the last restart took.
func TestWindowTooShort(t *testing.T) {
	s := newFixture(t, "0 * * * *", 0, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: framework.Gate}}
	})
	s.Change(t, s.restart, func() {
		// The window closes 100 s after a tick. The tick may wait for the next window for an hour.
		s.restart.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "59 * * * *", DurationSeconds: 160}}
		s.restart.Spec.StartingDeadlineSeconds = 3600
	})
	clock := framework.NewClock(t, hour.Add(-10*time.Minute))
	s.start(t, clock)
	s.enable(t)
	clock.Set(t, hour.Add(-time.Second))
	s.eventuallySent(t, 1)
	// The restart takes two minutes by the manager's clock.
	clock.Set(t, hour.Add(2*time.Minute))
	s.awaitMarker(t)
	framework.Eventually(t, "the restart is no longer running", func() error {
		s.OpenGate(t, s.namespace, s.deployment.Name)
		if s.Refresh(t, s.restart); s.restart.Status.Active != nil {
			return fmt.Errorf("status %+v", s.restart.Status)
		}
		return nil
	})
	s.eventually(t, "the restart has completed", succeeded(hour))
	clock.Set(t, hour.Add(time.Hour-time.Second))
	s.eventuallyIs(t, "WindowClosed")
	s.says(t, "and the last restart took 2m")
}

// says waits until the message of the condition Ready contains the given string.
func (s *fixture) says(t *testing.T, want string) {
	t.Helper()
	framework.Eventually(t, "the condition says "+want, func() error {
		s.Refresh(t, s.restart)
		ready := meta.FindStatusCondition(s.restart.Status.Conditions, tidekeeperv1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, want) {
			return errors.New(fmt.Sprint(ready))
		}
		return nil
	})
}
