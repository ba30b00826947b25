// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// youngFrom limits the age of pods to nearly a day, within a daily window of one hour that has just
// opened. Pods created before `at` are due for a restart, because they would become too old before
// the window opens again. There is no schedule.
func youngFrom(r *tidekeeperv1.ScheduledRestart, at time.Time) {
	opened := at.Add(-time.Minute).Truncate(time.Minute)
	r.Spec.Suspend, r.Spec.Schedule = false, ""
	r.Spec.MaxPodAgeSeconds = int32(opened.AddDate(0, 0, 1).Sub(at) / time.Second)
	r.Spec.Windows = []tidekeeperv1.RestartWindow{{
		Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", opened.Minute(), opened.Hour())), DurationSeconds: 3600,
	}}
}

// TestAgeOfPods checks that the pods of each kind of workload are restarted for their age, once.
func TestAgeOfPods(t *testing.T) {
	manager := cluster.StartManager(t)
	cluster.AddNodes(t, "aged", 1)
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	for _, kind := range kinds {
		workload(t, kind, "aged-"+strings.ToLower(kind))
	}
	// All pods already exist, so all of them are too old at this time.
	at := time.Now().Add(10 * time.Second).Truncate(time.Second).UTC()
	var all []*tidekeeperv1.ScheduledRestart
	for _, kind := range kinds {
		name := "aged-" + strings.ToLower(kind)
		r := restartOf(kind, name)
		youngFrom(r, at)
		cluster.Apply(t, r)
		all = append(all, r)
	}
	for _, r := range all {
		record := eventuallyOutcome(t, r, at, tidekeeperv1.OutcomeSucceeded, "")
		if record.Trigger != tidekeeperv1.TriggerAge {
			t.Errorf("%s: the trigger is %s", r.Name, record.Trigger)
		}
		eventuallyRestart(t, r, framework.Patience, "is due again when its window opens, or later", func() error {
			if next := r.Status.NextAgeTime; next == nil || next.Time.Before(at.Add(time.Duration(r.Spec.MaxPodAgeSeconds)*time.Second)) {
				return fmt.Errorf("it is due at %s", next)
			}
			return nil
		})
	}
	manager.AssertIdle(t)
	for _, r := range all {
		if cluster.Refresh(t, r); len(r.Status.History) != 1 {
			t.Errorf("%s: the history is %+v", r.Name, r.Status.History)
		}
	}
	metrics := manager.ReadMetrics(t)
	succeeded := 0.0
	for _, metric := range metrics["tidekeeper_restart_ticks_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["trigger"] == "Age" && labels["outcome"] == "Succeeded" {
			succeeded += metric.GetCounter().GetValue()
		}
	}
	if succeeded < float64(len(all)) {
		t.Errorf("%v restarts for the age of pods are counted, want %d", succeeded, len(all))
	}
}

// TestAgeIsThatOfThePods checks that only the age of the current pods counts. Neither an old
// workload nor an old last restart makes pods too old that were replaced since.
func TestAgeIsThatOfThePods(t *testing.T) {
	cluster.AddNodes(t, "renewed", 1)
	const limit = 3600
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		name := "renewed-" + strings.ToLower(kind)
		workload(t, kind, name)
		if out, err := cluster.Kubectl("", "rollout", "restart", strings.ToLower(kind)+"/"+name); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		rolledOut(t, kind, name)
		restarted := standing(t, name)
		nextSecond(t)
		for i := range restarted {
			cluster.Delete(t, &restarted[i])
		}
		framework.Eventually(t, "the pods of "+name+" are replaced", func() error {
			now := standing(t, name)
			for i := range now {
				if slices.ContainsFunc(restarted, func(before corev1.Pod) bool { return before.UID == now[i].UID }) {
					return fmt.Errorf("there is still %s", now[i].Name)
				}
			}
			return diff(len(restarted), len(now))
		})
	}
	// The new manager's cache has never contained the replaced pods.
	cluster.StartManager(t)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		r := restartOf(kind, "renewed-"+strings.ToLower(kind))
		r.Spec.Suspend, r.Spec.MaxPodAgeSeconds = false, limit
		cluster.Apply(t, r)
		var oldest time.Time
		for _, pod := range standing(t, r.Name) {
			if created := pod.CreationTimestamp.Time; oldest.IsZero() || created.Before(oldest) {
				oldest = created
			}
		}
		eventuallyRestart(t, r, framework.Patience, "is due when its oldest pod is too old", func() error {
			if r.Status.NextAgeTime == nil {
				return errors.New("it is not due")
			}
			return diff(oldest.Add(limit*time.Second).UTC(), r.Status.NextAgeTime.UTC())
		})
	}
}

// TestAgeIsNotKnown checks that a ScheduledRestart reports the age of its pods as unknown if no
// controller watches pods.
func TestAgeIsNotKnown(t *testing.T) {
	cluster.StartManager(t, "--controllers=scheduled-restart")
	cluster.AddNodes(t, "unknown", 1)
	workload(t, "Deployment", "unknown")
	r := restartOf("Deployment", "unknown")
	r.Spec.Suspend, r.Spec.Schedule, r.Spec.MaxPodAgeSeconds = false, "", 86400
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "PodsNotWatched")
}

// TestNoTriggerIsTheDefaultSchedule checks that an object without any trigger has the schedule that
// the CRD used as the default before other triggers existed, and that an object that limits the age
// of pods has no schedule.
func TestNoTriggerIsTheDefaultSchedule(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "daily", 1)
	workload(t, "Deployment", "daily")
	r := restartOf("Deployment", "daily")
	r.Spec.Suspend, r.Spec.Schedule = false, ""
	cluster.Apply(t, r)
	eventuallyRestart(t, r, framework.Patience, "has a tick at midnight", func() error {
		if next := r.Status.NextScheduleTime; next == nil || !next.Time.Equal(next.Truncate(24*time.Hour)) {
			return errors.New(fmt.Sprint(next))
		}
		return nil
	})
	cluster.Change(t, r, func() { r.Spec.MaxPodAgeSeconds = 86400 })
	eventuallyRestart(t, r, framework.Patience, "has its tick, and a limit", func() error {
		if r.Status.NextScheduleTime == nil || r.Status.NextAgeTime == nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	cluster.Change(t, r, func() { r.Spec.Schedule = "" })
	eventuallyRestart(t, r, framework.Patience, "has no tick, and a limit", func() error {
		if r.Status.NextScheduleTime != nil || r.Status.NextAgeTime == nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
}
