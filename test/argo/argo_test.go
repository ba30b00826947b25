// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) {
	framework.AllAtOnce()
	os.Exit(framework.Main(m, &cluster, "--nodes=2"))
}

// restartOf returns a suspended ScheduledRestart for the Rollout with the same name.
func restartOf(name string) *tidekeeperv1.ScheduledRestart {
	r := framework.ScheduledRestart(name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: name}, Suspend: true,
	}
	return r
}

// TestRollouts runs the package's tests with a single manager, which is started before Argo is
// installed.
func TestRollouts(t *testing.T) {
	manager := cluster.StartManager(t)
	later := restartOf("later")
	cluster.Apply(t, later)
	t.Run("NotInstalled", func(t *testing.T) {
		eventuallyIs(t, later, tidekeeperv1.ReasonTargetNotFound, "is its CRD installed?")
		// Other kinds of workloads are restarted while Argo is not installed.
		d := framework.Deployment("other", 1, framework.App)
		cluster.Apply(t, d)
		if out, err := cluster.Kubectl("", "rollout", "status", "deployment/other", framework.LongTimeout); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		r := framework.ScheduledRestart("other")
		r.Spec = tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "other"}, Suspend: true}
		cluster.Apply(t, r)
		tick := cluster.RequestRestart(t, r, time.Now())
		eventuallyRecord(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
		if got := cluster.RestartedAt(t, d); len(got) != 1 || got[0] != tick.Format(time.RFC3339) {
			t.Errorf("the Deployment was restarted for %q, want %s", got, tick)
		}
		manager.AssertIdle(t)
		manager.AssertSound(t)
	})
	cluster.InstallArgo(t)
	t.Run("InstalledLater", func(t *testing.T) {
		eventuallyIs(t, later, tidekeeperv1.ReasonTargetNotFound, "there is no Rollout later in this namespace")
		newRollout(t, "later")
		eventuallyIs(t, later, tidekeeperv1.ReasonSuspended, "")
		eventuallyRecord(t, later, cluster.RequestRestart(t, later, time.Now()), tidekeeperv1.OutcomeSucceeded, "")
	})
	t.Run("Installed", func(t *testing.T) {
		t.Run("Scheduled", func(t *testing.T) { t.Parallel(); scheduled(t, manager) })
		t.Run("Paused", func(t *testing.T) { t.Parallel(); paused(t) })
		t.Run("PausedAtAStep", func(t *testing.T) { t.Parallel(); pausedAtAStep(t) })
		t.Run("Aborted", func(t *testing.T) { t.Parallel(); aborted(t) })
	})
	manager.AssertSound(t)
}

// scheduled checks that a tick of the schedule restarts the pods once each, one after the other,
// and that the restart's record contains its duration.
func scheduled(t *testing.T, manager *framework.Manager) {
	o := newRollout(t, "scheduled", map[string]any{"setWeight": int64(34)}, map[string]any{"pause": map[string]any{}})
	followed := o.follow(t)
	r := o.restart(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule, s.Suspend = "* * * * *", false })
	cluster.Apply(t, r)
	var tick time.Time
	framework.EventuallyWithin(t, time.Minute+framework.Patience, "the Rollout has the tick", func() (err error) {
		cluster.Refresh(t, o.Unstructured)
		at, _, _ := unstructured.NestedString(o.Object, "spec", "restartAt")
		tick, err = time.Parse(time.RFC3339, at)
		return err
	})
	// The schedule is suspended so that the next tick does not interfere.
	cluster.Change(t, r, func() { r.Spec.Suspend = true })
	record := eventuallyRecord(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	if !tick.Equal(tick.Truncate(time.Minute)) || record.Trigger != tidekeeperv1.TriggerSchedule {
		t.Errorf("the tick is %s, and its trigger %s", tick, record.Trigger)
	}
	// A pod takes a second to become ready before the next pod is replaced.
	if took := record.CompletedTime.Sub(record.StartedTime.Time); took < (replicas-1)*time.Second || took > time.Since(tick) {
		t.Errorf("the record says that it took %s", took)
	}
	followed.assertRestartedOnce(t, tick)
	cluster.Refresh(t, o.Unstructured)
	for _, path := range [][]string{{"spec", "restartAt"}, {"status", "restartedAt"}} {
		if at, _, _ := unstructured.NestedString(o.Object, path...); at != tick.Format(time.RFC3339) {
			t.Errorf("%s is %q, want %s", strings.Join(path, "."), at, tick)
		}
	}
	// A restart is not an update, so it skips the update's steps.
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Healthy" {
		t.Errorf("its phase is %s", phase)
	}
	sets := &appsv1.ReplicaSetList{}
	if err := cluster.List(t.Context(), sets, client.MatchingLabels{"app": "scheduled"}); err != nil {
		t.Fatal(err)
	}
	if len(sets.Items) != 1 {
		t.Errorf("there are %d ReplicaSets, want that of the only pod template", len(sets.Items))
	}
	if n := manager.ReadMetrics(t).SumOf("tidekeeper_restart_ticks_total", "trigger", string(tidekeeperv1.TriggerSchedule)); n != 1 {
		t.Errorf("%g ticks of schedules were decided", n)
	}
}

// paused checks that a paused Rollout is not restarted, and that the missed tick's record states
// the reason.
func paused(t *testing.T) {
	o := newRollout(t, "paused")
	o.set(t, true, "paused")
	o.eventually(t, "Paused", "manually paused")
	r := o.restart(func(s *tidekeeperv1.ScheduledRestartSpec) { s.StartingDeadlineSeconds = 3 })
	cluster.Apply(t, r)
	record := eventuallyRecord(t, r, cluster.RequestRestart(t, r, time.Now()), tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonTargetPaused)
	hasWords(t, record, "Rollout paused is paused")
	o.isUntouched(t)
	o.set(t, false, "paused")
	o.eventually(t, "Healthy", "")
	cluster.Change(t, r, func() { r.Spec.StartingDeadlineSeconds = 900 })
	eventuallyRecord(t, r, cluster.RequestRestart(t, r, time.Now()), tidekeeperv1.OutcomeSucceeded, "")
}

// pausedAtAStep checks that a restart waits while its Rollout is being updated, and reports the
// step at which the update is paused. The restart starts when the update is complete.
func pausedAtAStep(t *testing.T) {
	o := newRollout(t, "step", map[string]any{"setWeight": int64(34)}, map[string]any{"pause": map[string]any{}})
	r := o.restart(func(s *tidekeeperv1.ScheduledRestartSpec) { s.StartingDeadlineSeconds = 600 })
	cluster.Apply(t, r)
	o.update(t)
	o.eventually(t, "Paused", "CanaryPauseStep")
	tick := cluster.RequestRestart(t, r, time.Now())
	eventuallyIs(t, r, tidekeeperv1.ReasonTargetRolling, "Rollout step is already being rolled out: its update is paused: CanaryPauseStep")
	o.isUntouched(t)
	o.promote(t)
	eventuallyRecord(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	o.eventually(t, "Healthy", "")
}

// aborted checks that a Rollout with an aborted update counts as unhealthy. Without the health
// precondition its current pods are restarted, and the aborted update does not make the restart
// fail.
func aborted(t *testing.T) {
	o := newRollout(t, "aborted", map[string]any{"setWeight": int64(34)}, map[string]any{"pause": map[string]any{}})
	r := o.restart(func(s *tidekeeperv1.ScheduledRestartSpec) { s.StartingDeadlineSeconds = 3 })
	cluster.Apply(t, r)
	o.update(t)
	o.eventually(t, "Paused", "CanaryPauseStep")
	o.abort(t)
	o.eventually(t, "Degraded", "RolloutAborted: Rollout aborted update to revision 2")
	record := eventuallyRecord(t, r, cluster.RequestRestart(t, r, time.Now()), tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonTargetUnhealthy)
	hasWords(t, record, "Rollout aborted is not healthy: its update was aborted")
	o.isUntouched(t)

	o.eventuallyWithoutUpdate(t)
	followed := o.follow(t)
	cluster.Change(t, r, func() {
		r.Spec.Precondition, r.Spec.StartingDeadlineSeconds = tidekeeperv1.PreconditionNone, 900
	})
	tick := cluster.RequestRestart(t, r, time.Now())
	eventuallyRecord(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	followed.assertRestartedOnce(t, tick)
}

// isUntouched fails the test if the Rollout's spec.restartAt is set.
func (r rollout) isUntouched(t *testing.T) {
	t.Helper()
	cluster.Refresh(t, r.Unstructured)
	if at, has, _ := unstructured.NestedString(r.Object, "spec", "restartAt"); has {
		t.Errorf("it was restarted for %s", at)
	}
}

func hasWords(t *testing.T, record tidekeeperv1.RestartRecord, words string) {
	t.Helper()
	if !strings.Contains(record.Message, words) {
		t.Errorf("the record says %q, want %q", record.Message, words)
	}
}

// eventuallyIs waits until the condition Ready has the given reason, and a message that contains
// `words`.
func eventuallyIs(t *testing.T, r *tidekeeperv1.ScheduledRestart, reason, words string) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, r.Name+" is "+reason, func() error {
		cluster.Refresh(t, r)
		if err := framework.ReadyIs(r.Status.Conditions, r.Generation, reason); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady); !strings.Contains(ready.Message, words) {
			return fmt.Errorf("it says %q, want %q", ready.Message, words)
		}
		return nil
	})
}

// eventuallyRecord waits until the latest history record is for the given tick, outcome and reason,
// and returns it. The timeout allows for events that Argo's controller misses and sees only in a
// resync, every half minute.
func eventuallyRecord(t *testing.T, r *tidekeeperv1.ScheduledRestart, tick time.Time, outcome tidekeeperv1.Outcome, reason string) tidekeeperv1.RestartRecord {
	t.Helper()
	framework.EventuallyWithin(t, 4*framework.Patience, r.Name+" has its outcome", func() error {
		cluster.Refresh(t, r)
		if len(r.Status.History) == 0 {
			return fmt.Errorf("no history yet; conditions %v", r.Status.Conditions)
		}
		last := r.Status.History[0]
		if !last.ScheduledTime.Time.Equal(tick) {
			return fmt.Errorf("the last record is of %s, and the tick is %s; conditions %v", last.ScheduledTime, tick, r.Status.Conditions)
		}
		if last.Outcome != outcome || last.Reason != reason {
			return fmt.Errorf("%s %s, want %s %s: %s", last.Outcome, last.Reason, outcome, reason, last.Message)
		}
		return nil
	})
	return r.Status.History[0]
}
