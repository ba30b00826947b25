// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestAge checks that a workload without a schedule is restarted when its pod is a day old, and not
// earlier. The restart must happen once per set of pods, regardless of manager restarts and clock
// changes.
func TestAge(t *testing.T) {
	s := newFixture(t, "@yearly", 0)
	s.Change(t, s.restart, func() { s.restart.Spec.Schedule, s.restart.Spec.MaxPodAgeSeconds = "", 24*60*60 })
	old := s.oldest(t).Add(24 * time.Hour)
	clock := framework.NewClock(t, old.Add(-time.Hour))
	manager := s.start(t, clock)
	s.enable(t)
	s.eventuallyDue(t, old)
	s.says(t, "no pod may be older than 24h0m0s, so that a restart is due at "+old.Format(time.RFC3339))
	s.stays(t, "the pod is not old enough")

	clock.Set(t, old.Add(-time.Second))
	s.eventually(t, "the pod is too old", succeeded(old))
	if got := s.restart.Status.History[0].Trigger; got != tidekeeperv1.TriggerAge {
		t.Errorf("the trigger is %s", got)
	}
	// next is the creation time of the new pod by the manager's clock, which is 24 hours ahead of
	// the API server's clock.
	next := s.oldest(t).Add(24 * time.Hour)
	manager.Kill(t)
	s.start(t, clock)
	s.stays(t, "another manager", succeeded(old))
	clock.Set(t, next.Add(24*time.Hour))
	framework.Eventually(t, "the new pod is too old", func() error {
		s.Refresh(t, s.restart)
		if s.restart.Status.Active != nil || len(s.restart.Status.History) != 2 {
			return fmt.Errorf("status %+v", s.restart.Status)
		}
		return nil
	})
	s.sent(t, nil)
}

// TestAgeAndAnotherRollout checks that a user's rollout postpones the restart for the pods' age:
// nothing is restarted at the time at which the replaced pods would have reached the maximum age.
func TestAgeAndAnotherRollout(t *testing.T) {
	s := newFixture(t, "@yearly", 0)
	s.Change(t, s.restart, func() { s.restart.Spec.MaxPodAgeSeconds = 24 * 60 * 60 })
	old := s.oldest(t).Add(24 * time.Hour)
	clock := framework.NewClock(t, old.Add(-time.Hour))
	s.start(t, clock)
	s.enable(t)
	s.eventuallyDue(t, old)
	time.Sleep(time.Until(old.Add(-24*time.Hour + 3*time.Second))) // sleep: pod creation times are in whole seconds of the API server's clock
	s.Change(t, s.deployment, func() { s.deployment.Spec.Template.Annotations["example.com/own"] = "1" })
	framework.Eventually(t, "the rollout is complete", func() error {
		s.Refresh(t, s.deployment)
		if d := s.deployment.Status; d.ObservedGeneration != s.deployment.Generation || d.UpdatedReplicas != 1 || d.Replicas != 1 || d.ReadyReplicas != 1 {
			return fmt.Errorf("status %+v", d)
		}
		return nil
	})
	next := s.oldest(t).Add(24 * time.Hour)
	if !next.After(old.Add(time.Second)) {
		t.Fatalf("the new pod is too old at %s, the one before it at %s", next, old)
	}
	clock.Set(t, old.Add(-time.Second))
	s.eventuallyDue(t, next)
	if got := s.restart.Status.History; len(got) > 0 {
		t.Errorf("it was restarted all the same: %+v", got)
	}
}

// TestAgeInAWindow checks that a pod that would exceed its maximum age before the next window opens
// is restarted when the current window opens.
func TestAgeInAWindow(t *testing.T) {
	s := newFixture(t, "@yearly", 0)
	old := s.oldest(t).Add(24 * time.Hour)
	// A window of two hours that closes some hours before the pod reaches its maximum age.
	opens := old.Add(-6 * time.Hour).Truncate(time.Hour)
	s.Change(t, s.restart, func() {
		s.restart.Spec.Schedule, s.restart.Spec.MaxPodAgeSeconds = "", 24*60*60
		s.restart.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("0 %d * * *", opens.Hour())), DurationSeconds: 2 * 60 * 60}}
	})
	clock := framework.NewClock(t, opens.Add(-time.Hour))
	s.start(t, clock)
	s.enable(t)
	s.eventuallyDue(t, opens)
	s.stays(t, "before the window")
	clock.Set(t, opens.Add(-time.Second))
	s.eventually(t, "the window opens", succeeded(opens))
}

// oldest returns the oldest pod's creation time.
func (s *fixture) oldest(t *testing.T) time.Time {
	t.Helper()
	pods := &corev1.PodList{}
	if err := s.List(t.Context(), pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	var oldest time.Time
	for i := range pods.Items {
		if created := pods.Items[i].CreationTimestamp.UTC(); pods.Items[i].DeletionTimestamp == nil && (oldest.IsZero() || created.Before(oldest)) {
			oldest = created
		}
	}
	if oldest.IsZero() {
		t.Fatal("there is no pod")
	}
	return oldest
}

// eventuallyDue waits until the next restart for the pods' age is due at the given time.
func (s *fixture) eventuallyDue(t *testing.T, at time.Time) {
	t.Helper()
	framework.Eventually(t, "a restart is due at "+at.Format(time.RFC3339), func() error {
		s.Refresh(t, s.restart)
		if next := s.restart.Status.NextAgeTime; next == nil || !next.Time.Equal(at) {
			return errors.New(fmt.Sprint(next))
		}
		return nil
	})
}
