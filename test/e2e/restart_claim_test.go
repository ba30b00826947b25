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

// claim is a Deployment's tick that the status has claimed before the tick is due.
type claim struct {
	restart    *tidekeeperv1.ScheduledRestart
	deployment *appsv1.Deployment
	generation int64
	tick       time.Time
}

// sent returns nil if the Deployment was restarted for the tick, exactly once, and not before the
// tick was due.
func (c *claim) sent(t *testing.T) error {
	cluster.Refresh(t, c.deployment)
	if c.deployment.Generation == c.generation {
		return errors.New("it was not restarted")
	}
	return diff(c.tick.Format(time.RFC3339), c.deployment.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation])
}

// isUntouched fails the test if the Deployment's spec was changed.
func (c *claim) isUntouched(t *testing.T) {
	t.Helper()
	if cluster.Refresh(t, c.deployment); c.deployment.Generation != c.generation {
		t.Errorf("Deployment %s was changed: %v", c.deployment.Name, c.deployment.Spec.Template.Annotations)
	}
}

// claimTicks starts a manager that claims ticks up to 41 seconds before they are due, and requests
// restarts of `count` Deployments for the same time. It returns when all ticks are claimed. The
// manager's clock then stands still one second before the ticks are due.
func claimTicks(t *testing.T, name string, count int, args ...string) (*framework.Manager, framework.Clock, []*claim) {
	t.Helper()
	tick := time.Now().Add(10 * time.Minute).Truncate(time.Second).UTC()
	clock := framework.NewStandingClock(t, tick.Add(-2*time.Minute))
	manager := cluster.WithClocks(t).StartManager(t, append(args, clock.Flag(), "--max-concurrent-restarts=4000", "--restart-namespace-share=100")...)
	all := make([]*claim, count)
	for i := range all {
		all[i] = &claim{deployment: workload(t, "Deployment", fmt.Sprintf("%s-%d", name, i)).(*appsv1.Deployment), tick: tick}
		all[i].restart = restartOf("Deployment", all[i].deployment.Name)
		cluster.Apply(t, all[i].restart)
	}
	for _, c := range all {
		cluster.Refresh(t, c.deployment)
		c.generation = c.deployment.Generation
		cluster.RequestRestart(t, c.restart, tick)
	}
	// Each tick is claimed at least one second before it is due.
	clock.Set(t, tick.Add(-time.Second))
	for _, c := range all {
		eventuallyRestart(t, c.restart, framework.Patience, "is claimed before it is due", func() error {
			if c.restart.Status.Active == nil {
				return fmt.Errorf("status %+v", c.restart.Status)
			}
			return nil
		})
	}
	for _, c := range all {
		c.isUntouched(t)
		if active := c.restart.Status.Active; !active.ScheduledTime.Time.Equal(tick) || !active.StartedTime.Time.Equal(tick) {
			t.Errorf("%s claims the tick of %s, to be started at %s; want %s", c.restart.Name, active.ScheduledTime, active.StartedTime, tick)
		}
	}
	return manager, clock, all
}

// TestRestartClaimTakenBack checks that a change between a tick's claim and the tick withdraws the
// claim. The tick is then decided as if it had never been claimed.
func TestRestartClaimTakenBack(t *testing.T) {
	cluster.AddNodes(t, "claims", 1)
	_, clock, claimed := claimTicks(t, "claim", 6)
	left, withdrawn, paused, moved, deleted, replaced := claimed[0], claimed[1], claimed[2], claimed[3], claimed[4], claimed[5]

	cluster.Change(t, withdrawn.restart, func() { delete(withdrawn.restart.Annotations, tidekeeperv1.RestartNowAnnotation) })
	cluster.Change(t, paused.deployment, func() { paused.deployment.Spec.Paused = true })
	paused.generation = paused.deployment.Generation
	other := workload(t, "Deployment", "claim-other").(*appsv1.Deployment)
	cluster.Refresh(t, other)
	elsewhere := &claim{deployment: other, generation: other.Generation, tick: moved.tick}
	cluster.Change(t, moved.restart, func() { moved.restart.Spec.TargetRef.Name = other.Name })
	cluster.Delete(t, deleted.restart)
	cluster.Delete(t, replaced.deployment)
	replaced.deployment = workload(t, "Deployment", replaced.deployment.Name).(*appsv1.Deployment)
	cluster.Refresh(t, replaced.deployment)
	replaced.generation = replaced.deployment.Generation

	clock.Set(t, left.tick)
	for what, c := range map[string]*claim{"left alone": left, "another target": elsewhere, "a new target of that name": replaced} {
		framework.Eventually(t, what+": it is restarted", func() error { return c.sent(t) })
	}
	for _, c := range []*claim{left, moved, replaced} {
		eventuallyOutcome(t, c.restart, c.tick, tidekeeperv1.OutcomeSucceeded, "")
		if len(c.restart.Status.History) != 1 {
			t.Errorf("the history of %s is %+v, want one restart", c.restart.Name, c.restart.Status.History)
		}
	}
	eventuallyRestartIs(t, paused.restart, "TargetPaused")
	for _, c := range []*claim{withdrawn, paused, moved, deleted} {
		c.isUntouched(t)
	}
	eventuallyRestart(t, withdrawn.restart, framework.Patience, "has no trace of the request that was withdrawn", func() error {
		if s := withdrawn.restart.Status; s.Active != nil || len(s.History) > 0 || s.LastRequestTime != nil {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	cluster.Change(t, paused.deployment, func() { paused.deployment.Spec.Paused = false })
	eventuallyOutcome(t, paused.restart, paused.tick, tidekeeperv1.OutcomeSucceeded, "")
}

// TestRestartClaimBehindAStaleCache checks that a request that was withdrawn before its time
// restarts nothing, even if the manager's cache still contains the request. The manager must read
// the ScheduledRestart from the API server before it sends a claimed tick.
func TestRestartClaimBehindAStaleCache(t *testing.T) {
	cluster.AddNodes(t, "blind", 1)
	proxy := cluster.StartProxy(t, "")
	_, clock, claimed := claimTicks(t, "blind", 5, "--kubeconfig", proxy.Kubeconfig)
	withdrawn, left := claimed[0], claimed[1]
	proxy.Freeze(t, "match: {resources: [scheduledrestarts.tidekeeper.dev]}")
	mark := proxy.Mark(t)
	cluster.Change(t, withdrawn.restart, func() { delete(withdrawn.restart.Annotations, tidekeeperv1.RestartNowAnnotation) })
	clock.Set(t, left.tick)
	framework.Eventually(t, "the other one is restarted", func() error { return left.sent(t) })
	framework.Eventually(t, "the manager has asked about the first one", func() error {
		asked := 0
		for _, entry := range proxy.PassedSince(t, mark) {
			if entry.Verb == "get" && entry.Resource == "scheduledrestarts.tidekeeper.dev" {
				asked++
			}
		}
		// The manager reads each of the other ScheduledRestarts at least once.
		if asked < 5+2 {
			return fmt.Errorf("it has asked %d times about 5", asked)
		}
		return nil
	})
	withdrawn.isUntouched(t)
	proxy.Thaw(t)
	eventuallyRestart(t, withdrawn.restart, framework.Patience, "is idle", func() error {
		if withdrawn.restart.Status.Active != nil {
			return errors.New("its claim is not taken back")
		}
		return nil
	})
	withdrawn.isUntouched(t)
}

// TestRestartClaimOfAnother checks that, if a manager claims a tick and is killed before the tick
// is due, the next manager sends the tick, once.
func TestRestartClaimOfAnother(t *testing.T) {
	cluster.AddNodes(t, "heir", 1)
	manager, clock, claimed := claimTicks(t, "heir", 4)
	manager.Kill(t)
	cluster.WithClocks(t).StartManager(t, clock.Flag())
	clock.Set(t, claimed[0].tick)
	for _, c := range claimed {
		eventuallyOutcome(t, c.restart, c.tick, tidekeeperv1.OutcomeSucceeded, "")
		if err := c.sent(t); err != nil || len(c.restart.Status.History) != 1 || c.deployment.Generation != c.generation+1 {
			t.Errorf("%s: %v; its Deployment was changed %d times, and the history is %+v; want one restart",
				c.restart.Name, err, c.deployment.Generation-c.generation, c.restart.Status.History)
		}
	}
}
