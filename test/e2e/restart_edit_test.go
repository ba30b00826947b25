// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// dueSince sets a ScheduledRestart's next tick to a past time, as if no manager had run since then.
// It must not be called while a manager is running.
func dueSince(t *testing.T, r *tidekeeperv1.ScheduledRestart, tick time.Time) {
	t.Helper()
	cluster.Refresh(t, r)
	before := r.DeepCopy()
	r.Status.NextScheduleTime = &metav1.Time{Time: tick}
	if err := cluster.Status().Patch(t.Context(), r, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// TestEditTakesEffectOnTheTickThatWaits checks that a due tick that has not started yet does not
// start if an edit removes it from the schedule or changes the target.
func TestEditTakesEffectOnTheTickThatWaits(t *testing.T) {
	cluster.AddNodes(t, "waits", 1)
	for name, edit := range map[string]func(*tidekeeperv1.ScheduledRestartSpec){
		"another time":   func(s *tidekeeperv1.ScheduledRestartSpec) { s.Schedule = "0 0 29 2 *" },
		"another target": func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name = "waits-other" },
	} {
		t.Run(name, func(t *testing.T) {
			manager := cluster.StartManager(t)
			d, other := workload(t, "Deployment", "waits"), workload(t, "Deployment", "waits-other")
			r := restartOf("Deployment", "waits")
			// No other tick is due before tomorrow.
			tick := time.Now().Truncate(time.Minute).Add(-3 * time.Minute).UTC()
			r.Spec.Suspend, r.Spec.Schedule = false, tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", tick.Minute(), tick.Hour()))
			cluster.Apply(t, r)
			eventuallyRestartIs(t, r, "Scheduled")
			manager.Stop(t)
			dueSince(t, r, tick)
			cluster.Change(t, r, func() { edit(&r.Spec) })
			cluster.StartManager(t)
			eventuallyRestart(t, r, framework.Patience, "has decided the tick", func() error {
				if len(r.Status.History) == 0 {
					return errors.New("no history yet")
				}
				first := r.Status.History[len(r.Status.History)-1]
				return diff(fmt.Sprint("Skipped Edited ", tick), fmt.Sprint(first.Outcome, " ", first.Reason, " ", first.ScheduledTime.UTC()))
			})
			if got := restartedAt(t, d) + restartedAt(t, other); got != "" {
				t.Errorf("it was restarted for %s", got)
			}
		})
	}
}

// TestRetargetedMeanwhile checks that a running restart is followed until completion even if the
// spec is changed to name another workload. The other workload must not be restarted.
func TestRetargetedMeanwhile(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "retarget", 1)
	d := held(t, "retarget")
	other := workload(t, "Deployment", "retarget-other")
	r := suspendedRestart(t, "retarget")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "Restarting")
	cluster.Change(t, r, func() { r.Spec.TargetRef.Name = "retarget-other" })
	eventuallyLetGo(t, d, r, tick)
	cluster.EventuallyEvent(t, "ScheduledRestart", "retarget", "Normal RestartSucceeded: restarted Deployment retarget, 1 pods in ")
	eventuallyRestartIs(t, r, "Suspended")
	if got := restartedAt(t, other); got != "" {
		t.Errorf("the other workload was restarted, at %s", got)
	}
}

// TestClaimThatWasNeverSent checks that a restart that was claimed and never sent does not count as
// failed if its target was deleted or its schedule was stopped.
func TestClaimThatWasNeverSent(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	cluster.AddNodes(t, "unsent", 1)
	d := workload(t, "Deployment", "unsent")
	r := suspendedRestart(t, "unsent")
	proxy.Add(t, `rules: [{name: unsent, match: {verbs: [patch], resources: [deployments.apps], names: [unsent]}, fault: {kind: Error, code: 500}}]`)
	tick := request(t, r)
	proxy.AwaitFired(t, "unsent", 1)
	cluster.Delete(t, d)
	record := eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSkipped, "TargetNotFound")
	if record.StartedTime != nil || r.Status.ConsecutiveFailures != 0 {
		t.Errorf("the record has the start time %s, and %d failures are counted", record.StartedTime, r.Status.ConsecutiveFailures)
	}
}

// TestRequestLeavesARecord checks that a waiting request leaves a history record when it is
// overwritten or withdrawn.
func TestRequestLeavesARecord(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "asked", 1)
	d := deployment("asked", 1, app)
	d.Spec.Paused = true
	cluster.Apply(t, d)
	r := suspendedRestart(t, "asked")
	first := cluster.RequestRestart(t, r, time.Now().Add(-2*time.Second))
	eventuallyRestart(t, r, framework.Patience, "waits", func() error {
		if r.Status.PendingRequestTime == nil {
			return errors.New("it does not")
		}
		return nil
	})
	second := request(t, r)
	eventuallyOutcome(t, r, first, tidekeeperv1.OutcomeSkipped, "Superseded")
	cluster.Change(t, r, func() { r.Annotations = nil })
	eventuallyOutcome(t, r, second, tidekeeperv1.OutcomeSkipped, "Withdrawn")
}
