// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestClosedGateIsTold checks that a tick whose gate stays closed is reported as missed because of
// the gate when the next tick is due. Its report must not wait for a deadline that each further
// tick postpones.
func TestClosedGateIsTold(t *testing.T) {
	manager := cluster.StartManager(t)
	d := deployment("closed", 1, app)
	d.Spec.Paused = true
	cluster.Apply(t, d)
	r := everyMinute(restartOf("Deployment", "closed"))
	cluster.Apply(t, r)
	eventuallyRestart(t, r, framework.Patience, "has its first tick", func() error {
		if r.Status.NextScheduleTime == nil {
			return errors.New("it has not")
		}
		return nil
	})
	manager.Stop(t)
	dueSince(t, r, time.Now().Truncate(time.Minute).Add(-4*time.Minute))
	cluster.StartManager(t)
	eventuallyRestart(t, r, framework.Patience, "records what it has missed", func() error {
		for _, record := range r.Status.History {
			if record.Outcome == tidekeeperv1.OutcomeMissed && record.Reason == "TargetPaused" && record.EarlierTicks >= 3 {
				return nil
			}
		}
		return fmt.Errorf("history %+v", r.Status.History)
	})
	eventuallyRestartIs(t, r, "TargetPaused")
}

// TestPartitionThatRollsNothing checks that a StatefulSet without pods at or above its partition is
// not restarted.
func TestPartitionThatRollsNothing(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "part", 1)
	s := workload(t, "StatefulSet", "part").(*appsv1.StatefulSet)
	cluster.Change(t, s, func() {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
	})
	r := restartOf("StatefulSet", "part")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "StrategyPartition")
	eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSkipped, "StrategyPartition")
	if got := restartedAt(t, s); got != "" {
		t.Errorf("its pod template was changed anyway, for %s", got)
	}
}

// TestFailureLimitAndARequest checks that a schedule that was stopped by its failure limit stays
// stopped when a requested restart succeeds.
func TestFailureLimitAndARequest(t *testing.T) {
	clock := framework.NewStandingClock(t, time.Now().Truncate(time.Second))
	cluster.WithClocks(t).StartManager(t, clock.Flag())
	cluster.AddNodes(t, "limit", 1)
	d := deployment("limit", 1, app)
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/behavior": "never-ready"}
	cluster.Apply(t, d)
	r := restartOf("Deployment", "limit")
	r.Spec.Suspend, r.Spec.FailureLimit, r.Spec.ProgressDeadlineSeconds, r.Spec.Precondition = false, 1, 60, tidekeeperv1.PreconditionNone
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Scheduled")
	tick := cluster.RequestRestart(t, r, clock.Now(t))
	eventuallyRestartIs(t, r, "Restarting")
	clock.Set(t, clock.Now(t).Add(2*time.Minute))
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeFailed, "Timeout")
	eventuallyRestartIs(t, r, "FailureLimit")
	cluster.Change(t, d, func() { delete(d.Spec.Template.Annotations, "sandbox.tidekeeper.dev/behavior") })
	rolledOut(t, "Deployment", "limit")
	cluster.RequestRestart(t, r, clock.Now(t))
	framework.Eventually(t, "the request is completed", func() error {
		cluster.Refresh(t, r)
		return diff(2, len(r.Status.History))
	})
	if got := r.Status.History[0]; got.Outcome != tidekeeperv1.OutcomeSucceeded && got.Reason != "AlreadyRestarted" {
		t.Errorf("the request ended as %+v", got)
	}
	eventuallyRestartIs(t, r, "FailureLimit")
}

// TestRestartEndsWithoutItsStatistic checks that a restart completes even if the new pods' start-up
// times, which are only statistics, cannot be read.
func TestRestartEndsWithoutItsStatistic(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	cluster.AddNodes(t, "blind", 1)
	workload(t, "Deployment", "blind")
	r := suspendedRestart(t, "blind")
	proxy.Freeze(t, "match: {resources: [pods]}")
	proxy.Add(t, `rules: [{name: blind, match: {verbs: [list], resources: [pods]}, fault: {kind: Error, code: 500}}]`)
	record := eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	if record.PodStartup != nil {
		t.Errorf("the record has %+v, which cannot be known", record.PodStartup)
	}
}
