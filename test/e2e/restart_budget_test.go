// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// held creates a Deployment whose new pods become ready only when the test opens their readiness
// gate, so that the test controls the duration of the Deployment's restarts. It waits until the
// Deployment is rolled out.
func held(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := deployment(name, 1, *app.DeepCopy())
	d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: framework.Gate}}
	cluster.Apply(t, d)
	framework.Eventually(t, name+" is rolled out", func() error {
		cluster.OpenGate(t, d.Namespace, name)
		cluster.Refresh(t, d)
		return diff(int32(1), d.Status.AvailableReplicas)
	})
	return d
}

// eventuallyLetGo opens the readiness gates of a Deployment from [held] until its restart has
// succeeded, and returns the history record for the tick.
func eventuallyLetGo(t *testing.T, d *appsv1.Deployment, r *tidekeeperv1.ScheduledRestart, tick time.Time) tidekeeperv1.RestartRecord {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "has succeeded", func() error {
		cluster.OpenGate(t, d.Namespace, d.Name)
		if len(r.Status.History) == 0 || !r.Status.History[0].ScheduledTime.Time.Equal(tick) {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	record := r.Status.History[0]
	if record.Outcome != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("%s: the record is %+v, want a success", r.Name, record)
	}
	return record
}

// suspendedRestart creates a suspended ScheduledRestart for a Deployment.
func suspendedRestart(t *testing.T, name string) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	r := restartOf("Deployment", name)
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	return r
}

// TestBudgetIsGivenBackByWhoCannotWrite checks that a status write that the API server rejects
// delays only its own restart, and does not occupy a slot of the restart budget.
func TestBudgetIsGivenBackByWhoCannotWrite(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig, "--max-concurrent-restarts=1")
	cluster.AddNodes(t, "unwritable", 1)
	workload(t, "Deployment", "unwritable-bad")
	workload(t, "Deployment", "unwritable-good")
	bad, good := suspendedRestart(t, "unwritable-bad"), suspendedRestart(t, "unwritable-good")
	proxy.Add(t, `rules: [{name: refused, match: {verbs: [patch], resources: [scheduledrestarts.tidekeeper.dev/status], names: [unwritable-bad]}, fault: {kind: Error, code: 422}}]`)
	request(t, bad)
	proxy.AwaitFired(t, "refused", 1)
	eventuallyOutcome(t, good, request(t, good), tidekeeperv1.OutcomeSucceeded, "")
	// The restart continues as soon as its status is accepted again.
	proxy.Remove(t, "refused")
	eventuallyRestart(t, bad, 2*framework.Patience, "continues", func() error {
		if len(bad.Status.History) == 0 || bad.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded {
			return fmt.Errorf("its history is %v", bad.Status.History)
		}
		return nil
	})
}

// TestRequestForAnImpossibleTime checks that a restart request for a time that the status cannot
// represent is reported, and has no other effect.
func TestRequestForAnImpossibleTime(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "impossible", 1)
	workload(t, "Deployment", "impossible")
	r := suspendedRestart(t, "impossible")
	for _, value := range []string{"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31T23:59:59Z"} {
		cluster.Change(t, r, func() { metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, value) })
		cluster.EventuallyEvent(t, "ScheduledRestart", "impossible",
			fmt.Sprintf("Warning InvalidRequest: the annotation tidekeeper.dev/restart-now must be a time from 1970 on and at most a year ahead, and is %q", value))
	}
	eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	if len(r.Status.History) != 1 {
		t.Errorf("history %+v, want the one restart", r.Status.History)
	}
}

// TestBudgetGoesByWhoWaitsLongest checks that a ScheduledRestart whose next restart is due as soon
// as the previous one is complete waits behind ScheduledRestarts that have waited longer. A request
// for a past time must not bypass them.
func TestBudgetGoesByWhoWaitsLongest(t *testing.T) {
	cluster.StartManager(t, "--max-concurrent-restarts=1")
	cluster.AddNodes(t, "line", 1)
	held(t, "line-hog")
	workload(t, "Deployment", "line-first")
	workload(t, "Deployment", "line-cheat")
	hog, first, cheat := suspendedRestart(t, "line-hog"), suspendedRestart(t, "line-first"), suspendedRestart(t, "line-cheat")
	request(t, hog)
	eventuallyRestartIs(t, hog, "Restarting")
	request(t, first)
	eventuallyRestartIs(t, first, "BudgetExhausted")
	cluster.RequestRestart(t, cheat, time.Now().Add(-10*time.Minute))
	eventuallyRestartIs(t, cheat, "BudgetExhausted")
	cluster.RequestRestart(t, hog, hog.Status.Active.ScheduledTime.Add(time.Second))
	for r, restarts := range map[*tidekeeperv1.ScheduledRestart]int{hog: 2, first: 1, cheat: 1} {
		eventuallyRestart(t, r, framework.Patience, "has restarted", func() error {
			cluster.OpenGate(t, hog.Namespace, "line-hog")
			return diff(restarts, len(r.Status.History))
		})
	}
	started := func(r *tidekeeperv1.ScheduledRestart) time.Time { return r.Status.History[0].StartedTime.Time }
	// The start times are in whole seconds, and may be equal.
	if started(hog).Before(started(first)) {
		t.Errorf("the one that waited was started at %s, the one that had just completed a restart at %s; want it the other way round", started(first), started(hog))
	}
	if started(cheat).Before(started(first)) {
		t.Errorf("a request in the past was started at %s, before the one that waited longer, at %s", started(cheat), started(first))
	}
}

// TestBudgetSlotAge checks that a restart that takes longer than the maximum age of a slot releases
// its slot and continues.
func TestBudgetSlotAge(t *testing.T) {
	manager := cluster.StartManager(t, "--max-concurrent-restarts=1", "--restart-slot-age=2s")
	cluster.AddNodes(t, "age", 1)
	d := deployment("age-never", 1, app)
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/behavior": "never-ready"}
	cluster.Apply(t, d)
	workload(t, "Deployment", "age-other")
	never, other := restartOf("Deployment", "age-never"), suspendedRestart(t, "age-other")
	never.Spec.Precondition = tidekeeperv1.PreconditionNone
	cluster.Apply(t, never)
	eventuallyRestartIs(t, never, "Suspended")
	request(t, never)
	eventuallyRestartIs(t, never, "Restarting")
	eventuallyOutcome(t, other, request(t, other), tidekeeperv1.OutcomeSucceeded, "")
	eventuallyRestart(t, never, framework.Patience, "says that its slot is gone", func() error {
		ready := meta.FindStatusCondition(never.Status.Conditions, "Ready")
		if never.Status.Active == nil || !strings.Contains(ready.Message, "takes longer than 2s") {
			return errors.New(ready.Message)
		}
		return nil
	})
	framework.Eventually(t, "no slot is in use, and one restart has outlived its own", func() error {
		metrics := manager.ReadMetrics(t)
		return diff([]float64{0, 1}, []float64{metrics.Sum("tidekeeper_restart_active"), metrics.Sum("tidekeeper_restart_outlived")})
	})
}
