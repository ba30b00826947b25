// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// orderedRestart creates a suspended ScheduledRestart with a starting deadline that runs after the
// ScheduledRestarts named in `after`.
func orderedRestart(t *testing.T, name string, deadlineSeconds int32, after ...string) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	r := restartOf("Deployment", name)
	r.Spec.StartingDeadlineSeconds, r.Spec.After = deadlineSeconds, after
	cluster.Apply(t, r)
	return r
}

// TestRestartOrder checks that a restart starts only when its predecessor is complete, even though
// both are due at the same time and could be claimed before that.
func TestRestartOrder(t *testing.T) {
	tick := time.Now().Add(10 * time.Minute).Truncate(time.Second).UTC()
	clock := framework.NewStandingClock(t, tick.Add(-time.Minute))
	cluster.WithClocks(t).StartManager(t, clock.Flag())
	cluster.AddNodes(t, "order", 1)
	d := held(t, "order-db")
	second := workload(t, "Deployment", "order-app")
	db, app := suspendedRestart(t, "order-db"), orderedRestart(t, "order-app", 900, "order-db")
	eventuallyRestartIs(t, app, "Suspended")
	for _, r := range []*tidekeeperv1.ScheduledRestart{app, db} {
		cluster.RequestRestart(t, r, tick)
	}
	clock.Set(t, tick.Add(-time.Second))
	eventuallyRestart(t, db, framework.Patience, "is claimed before it is due", func() error {
		if db.Status.Active == nil {
			return fmt.Errorf("status %+v", db.Status)
		}
		return nil
	})
	clock.Set(t, tick)
	framework.Eventually(t, "the first is sent", func() error { return diff(tick.Format(time.RFC3339), restartedAt(t, d)) })
	eventuallyRestartIs(t, app, "OutOfOrder")
	if at := restartedAt(t, second); at != "" {
		t.Errorf("the other one was restarted before the first was complete: %s", at)
	}
	first := eventuallyLetGo(t, d, db, tick)
	then := eventuallyOutcome(t, app, tick, tidekeeperv1.OutcomeSucceeded, "")
	if then.StartedTime.Time.Before(first.CompletedTime.Time) {
		t.Errorf("it was started at %s, before the one that comes first was complete, at %s", then.StartedTime, first.CompletedTime)
	}
}

// TestRestartOrderMissed checks that a restart is missed if its predecessor has failed or does not
// exist.
func TestRestartOrderMissed(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "amiss", 1)
	d := deployment("amiss-db", 1, app)
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/behavior": "never-ready"}
	cluster.Apply(t, d)
	workload(t, "Deployment", "amiss-app")
	workload(t, "Deployment", "amiss-other")
	db := restartOf("Deployment", "amiss-db")
	db.Spec.Precondition, db.Spec.ProgressDeadlineSeconds = tidekeeperv1.PreconditionNone, 1
	cluster.Apply(t, db)
	eventuallyRestartIs(t, db, "Suspended")
	app, other := orderedRestart(t, "amiss-app", 900, "amiss-db"), orderedRestart(t, "amiss-other", 1, "amiss-nothing")
	eventuallyRestartIs(t, app, "Suspended")
	eventuallyRestartIs(t, other, "Suspended")

	eventuallyOutcome(t, other, request(t, other), tidekeeperv1.OutcomeMissed, "PredecessorNotFound")
	tick := request(t, db)
	eventuallyOutcome(t, db, tick, tidekeeperv1.OutcomeFailed, "Timeout")
	tick = request(t, app)
	eventuallyRestartIs(t, app, "PredecessorFailed")
	cluster.Change(t, app, func() { app.Spec.StartingDeadlineSeconds = 1 })
	record := eventuallyOutcome(t, app, tick, tidekeeperv1.OutcomeMissed, "PredecessorFailed")
	if want := "not started before the deadline: it comes after amiss-db, whose restart for the tick of "; !strings.HasPrefix(record.Message, want) {
		t.Errorf("the record says %q, want %q…", record.Message, want)
	}
}

// TestRestartOrderCycle checks that ScheduledRestarts that are to run after each other report the
// cycle immediately, and restart nothing. They continue when the cycle is removed.
func TestRestartOrderCycle(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "circle", 1)
	workload(t, "Deployment", "circle-a")
	a, b, c := orderedRestart(t, "circle-a", 900, "circle-b"), orderedRestart(t, "circle-b", 900, "circle-c"), orderedRestart(t, "circle-c", 900)
	all := []*tidekeeperv1.ScheduledRestart{a, b, c}
	eventuallyRestartIs(t, a, "Suspended")
	cluster.Refresh(t, c)
	cluster.Change(t, c, func() { c.Spec.After = []string{"circle-a"} })
	for _, r := range all {
		eventuallyRestartIs(t, r, "OrderCycle")
	}
	cluster.EventuallyEvent(t, "ScheduledRestart", "circle-a",
		"Warning OrderCycle: by spec.after these come after each other, and none can be first: circle-a after circle-b after circle-c after circle-a")
	eventuallyOutcome(t, a, request(t, a), tidekeeperv1.OutcomeSkipped, "OrderCycle")

	cluster.Change(t, b, func() { b.Spec.After = nil })
	eventuallyRestartIs(t, a, "Suspended")
	eventuallyOutcome(t, a, cluster.RequestRestart(t, a, time.Now().Add(time.Second)), tidekeeperv1.OutcomeSucceeded, "")
}

// TestWrongOrdersAreRefused checks that an invalid order is rejected with an error that names the
// mistake.
func TestWrongOrdersAreRefused(t *testing.T) {
	for _, tt := range []struct{ after, want string }{
		{"[wrong]", "after must not name the ScheduledRestart itself"},
		{"[A_b]", "after must have names of ScheduledRestarts: lower-case letters, digits, '-' and '.'"},
		{"['']", "spec.after[0]"},
		{"[a, a]", `spec.after[1]: Duplicate value: "a"`},
		{"[a, b, c, d, e, f, g, h, i]", "spec.after: Too many: 9: must have at most 8 items"},
	} {
		manifest := fmt.Sprintf("apiVersion: tidekeeper.dev/v1\nkind: ScheduledRestart\nmetadata: {name: wrong}\nspec: {targetRef: {kind: Deployment, name: x}, after: %s}\n", tt.after)
		out, err := cluster.Kubectl(manifest, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		if err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s: %v\n%s\nwant it to say\n%s", tt.after, err, out, tt.want)
		}
	}
	framework.Eventually(t, "a right one is accepted", func() error {
		_, err := cluster.Kubectl("apiVersion: tidekeeper.dev/v1\nkind: ScheduledRestart\nmetadata: {name: right}\nspec: {targetRef: {kind: Deployment, name: x}, after: [a, b.c]}\n", "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		return err
	})
}
