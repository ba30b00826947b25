// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// refuseDeletion makes the API server reject the deletion of a ScheduledRestart, as a webhook
// could.
func refuseDeletion(t *testing.T, name string) {
	t.Helper()
	lift := func() {
		if _, err := cluster.Kubectl("", "delete", "--ignore-not-found", "validatingadmissionpolicy,validatingadmissionpolicybinding", name); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(lift)
	cluster.MustKubectl(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [tidekeeper.dev], apiVersions: [v1], operations: [DELETE], resources: [scheduledrestarts]}]
  matchConditions: [{name: this, expression: "oldObject.metadata.name == '%[1]s'"}]
  validations: [{expression: "false", message: refused in this test}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name), "apply", "-f", "-")
	framework.Eventually(t, "the policy is in force", func() error {
		if err := cluster.Client.Delete(t.Context(), framework.ScheduledRestart(name), client.DryRunAll); err == nil {
			return errors.New("it is not")
		}
		return nil
	})
}

// TestOrphanRestartsNothingForAnyTrigger checks that an opt-in's orphaned ScheduledRestart does not
// restart a new workload with the same name. This includes a tick that was claimed while the
// manager did not know the new workload, a later tick, and a ConfigMap change that restarts another
// workload. A requested restart must happen.
func TestOrphanRestartsNothingForAnyTrigger(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, o client.Object, r *tidekeeperv1.ScheduledRestart){
		"orphan-left": func(t *testing.T, o client.Object, _ *tidekeeperv1.ScheduledRestart) {
			if err := cluster.Client.Delete(t.Context(), o, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
				t.Fatal(err)
			}
		},
		"orphan-stays": func(t *testing.T, o client.Object, r *tidekeeperv1.ScheduledRestart) {
			refuseDeletion(t, r.Name)
			cluster.Delete(t, o)
		},
	} {
		t.Run(name, func(t *testing.T) { orphanRestartsNothing(t, name, replace) })
	}
}

func orphanRestartsNothing(t *testing.T, name string, replace func(*testing.T, client.Object, *tidekeeperv1.ScheduledRestart)) {
	tick := time.Now().Add(20 * time.Minute).Truncate(time.Minute).UTC()
	clock := framework.NewStandingClock(t, tick.Add(-2*time.Minute))
	proxy := cluster.StartProxy(t, "")
	manager := cluster.WithClocks(t).StartManager(t, append(withConfig, "--kubeconfig", proxy.Kubeconfig, clock.Flag(), "--max-concurrent-restarts=4000", "--restart-namespace-share=100")...)
	cluster.AddNodes(t, name, 1)
	// A second workload, with a user's own ScheduledRestart, shows when the manager has handled the
	// change.
	c := configMap(t, name, map[string]string{"a": "1"})
	beside := configured(t, workload(t, "Deployment", name+"-beside"), "Deployment", name+"-beside", allOf(name))
	create := func() *appsv1.Deployment {
		d := deployment(name, 2, *app.DeepCopy())
		allOf(name)(&d.Spec.Template.Spec)
		cluster.Apply(t, d)
		rolledOut(t, "Deployment", name)
		return d
	}
	old := create()
	schedule := fmt.Sprintf("%d %d * * *", tick.Minute(), tick.Hour())
	annotate(t, old, optInKey, "true", scheduleKey, schedule)
	r := eventuallyOptIn(t, name, wanted{Schedule: schedule})
	t.Cleanup(func() {
		// The policy that rejected the deletion may be enforced for a short time after the policy's
		// own deletion.
		framework.Eventually(t, "it is deleted", func() error {
			return client.IgnoreNotFound(cluster.Client.Delete(context.WithoutCancel(t.Context()), r))
		})
	})
	for _, of := range []*tidekeeperv1.ScheduledRestart{r, beside} {
		cluster.Change(t, of, func() {
			of.Spec.OnConfigChange, of.Spec.Schedule = tidekeeperv1.ConfigMapsOnly, tidekeeperv1.CronExpression(schedule)
		})
		eventuallyRestart(t, of, framework.Patience, "has its tick, and knows the content", func() error {
			if next := of.Status.NextScheduleTime; next == nil || !next.Time.Equal(tick) || of.Status.ConfigHash == "" || of.Status.ObservedGeneration != of.Generation {
				return fmt.Errorf("status %+v", of.Status)
			}
			return nil
		})
	}
	collectorKnows(t, name+"-known")
	clock.Set(t, tick.Add(-time.Second))
	eventuallyRestart(t, r, framework.Patience, "has claimed its tick", func() error {
		if r.Status.Active == nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})

	proxy.Freeze(t, "match: {resources: [scheduledrestarts.tidekeeper.dev, deployments.apps]}")
	replace(t, old, r)
	eventuallyGone(t, old)
	d := create()
	cluster.Refresh(t, d)
	generation := d.Generation
	isUntouched := func(when string) {
		t.Helper()
		if cluster.Refresh(t, d); d.Generation != generation {
			t.Errorf("%s: it was restarted for %s", when, d.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation])
		}
	}
	clock.Set(t, tick)
	framework.Eventually(t, "the tick of the workload beside it is sent", func() error {
		o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: beside.Name, Namespace: beside.Namespace}}
		return diff(tick.Format(time.RFC3339), restartedAt(t, o))
	})
	proxy.Thaw(t)
	eventuallyOutcome(t, beside, tick, tidekeeperv1.OutcomeSucceeded, "")
	// The tick was either claimed for the deleted workload, or is only now decided for an orphaned
	// ScheduledRestart.
	eventuallyRestart(t, r, framework.Patience, "skips the tick", func() error {
		if last := r.Status.History; len(last) != 1 || last[0].Outcome != tidekeeperv1.OutcomeSkipped || last[0].Reason != "Orphaned" && last[0].Reason != "TargetNotFound" {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	eventuallyRestartIs(t, r, "Orphaned")
	isUntouched("at the tick that was claimed")
	framework.Eventually(t, "by the metric one is orphaned", func() error {
		if manager.ReadMetrics(t).SumOf("tidekeeper_restart_schedules", "reason", "Orphaned") < 1 {
			return errors.New("none is")
		}
		return nil
	})

	setKey(t, c, "a", "2")
	// The clock runs no faster than time passes, and stands during the restart, which has a deadline.
	var advanced time.Time
	eventuallyRestart(t, beside, framework.Patience, "is restarted for the change", func() error {
		if beside.Status.Active == nil && time.Since(advanced) >= time.Second {
			clock.Set(t, clock.Now(t).Add(time.Second))
			advanced = time.Now()
		}
		if last := beside.Status.History[0]; last.Trigger != tidekeeperv1.TriggerChange || last.Outcome != tidekeeperv1.OutcomeSucceeded {
			return fmt.Errorf("status %+v", beside.Status)
		}
		return nil
	})
	manager.AssertIdle(t)
	isUntouched("when the content has changed")

	next := tick.AddDate(0, 0, 1)
	clock.Set(t, next)
	eventuallyOutcome(t, beside, next, tidekeeperv1.OutcomeSucceeded, "")
	manager.AssertIdle(t)
	isUntouched("at the next tick")

	request := cluster.RequestRestart(t, r, next.Add(time.Second))
	clock.Set(t, request)
	eventuallyOutcome(t, r, request, tidekeeperv1.OutcomeSucceeded, "")
	if err := diff(request.Format(time.RFC3339), restartedAt(t, d)); err != nil {
		t.Errorf("the request was not carried out %v", err)
	}
	eventuallyRestartIs(t, r, "Orphaned")
}
