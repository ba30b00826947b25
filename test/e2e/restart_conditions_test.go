// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestRestartLeavesBrokenAlone checks that a broken workload is not restarted, and that the tick's
// history record states the reason.
func TestRestartLeavesBrokenAlone(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "broken", 1)
	d := deployment("broken", 2, app)
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/behavior": "never-ready"}
	cluster.Apply(t, d)
	r := restartOf("Deployment", "broken")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "TargetUnhealthy")
	cluster.Change(t, r, func() { r.Spec.StartingDeadlineSeconds = 1 })
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeMissed, "TargetUnhealthy")
	if got := restartedAt(t, d); got != "" {
		t.Errorf("it was restarted, at %s", got)
	}
	cluster.EventuallyEvent(t, "ScheduledRestart", "broken", "Warning RestartMissed: TargetUnhealthy: not started before the deadline: Deployment broken is not healthy")

	cluster.Change(t, r, func() {
		r.Spec.Precondition, r.Spec.StartingDeadlineSeconds, r.Spec.ProgressDeadlineSeconds = tidekeeperv1.PreconditionNone, 900, 3
	})
	tick = request(t, r)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeFailed, "Timeout")
	if err := diff(tick.Format(time.RFC3339), restartedAt(t, d)); err != nil {
		t.Errorf("without a precondition it is not restarted %v", err)
	}
}

// TestRestartWaitsForItsGate checks that a tick runs as soon as its gate opens, because the manager
// watches the workload instead of polling it.
func TestRestartWaitsForItsGate(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "gate", 1)
	d := workload(t, "Deployment", "gate").(*appsv1.Deployment)
	cluster.Change(t, d, func() { d.Spec.Paused = true })
	r := restartOf("Deployment", "gate")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "TargetPaused")
	cluster.Change(t, d, func() { d.Spec.Paused = false })
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
}

// TestRestartBudget checks that with a restart budget of one, restarts run one after another, in
// the order of their ticks.
func TestRestartBudget(t *testing.T) {
	cluster.StartManager(t, "--max-concurrent-restarts=1")
	cluster.AddNodes(t, "budget", 1)
	var restarts []*tidekeeperv1.ScheduledRestart
	for i := range 3 {
		name := fmt.Sprintf("budget-%d", i)
		workload(t, "Deployment", name)
		r := restartOf("Deployment", name)
		cluster.Apply(t, r)
		eventuallyRestartIs(t, r, "Suspended")
		restarts = append(restarts, r)
	}
	ticks := map[string]time.Time{}
	for _, r := range restarts {
		ticks[r.Name] = request(t, r)
	}
	for _, r := range restarts {
		eventuallyOutcome(t, r, ticks[r.Name], tidekeeperv1.OutcomeSucceeded, "")
	}
	// Timestamps are in whole seconds: a restart may be complete in the same second in which it was
	// started.
	slices.SortFunc(restarts, func(a, b *tidekeeperv1.ScheduledRestart) int {
		first, second := a.Status.History[0], b.Status.History[0]
		return cmp.Or(first.StartedTime.Compare(second.StartedTime.Time), first.CompletedTime.Compare(second.CompletedTime.Time))
	})
	for i := 1; i < len(restarts); i++ {
		before, after := restarts[i-1].Status.History[0], restarts[i].Status.History[0]
		if after.StartedTime.Before(&before.CompletedTime) {
			t.Errorf("%s was started at %s, before %s was complete at %s", restarts[i].Name, after.StartedTime, restarts[i-1].Name, before.CompletedTime)
		}
	}
}

// TestRestartWithoutTarget checks that a ScheduledRestart reports a missing target and waits for
// it, and that a user's ScheduledRestart is never deleted because its target is missing.
func TestRestartWithoutTarget(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "lost", 1)
	r := restartOf("Deployment", "lost")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "TargetNotFound")
	d := workload(t, "Deployment", "lost")
	eventuallyRestartIs(t, r, "Suspended")
	cluster.Delete(t, d)
	eventuallyRestartIs(t, r, "TargetNotFound")
}

// TestRestartAndGitOps checks that GitOps tools neither undo a restart nor conflict with it.
func TestRestartAndGitOps(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "gitops", 1)
	for name, args := range map[string][]string{"client-side": nil, "server-side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			name := "gitops-" + name
			manifest := fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {example.com/a: b}}
    spec: {containers: [{name: app, image: "example.com/app:1"}]}
`, name)
			apply := append([]string{"apply", "-f", "-"}, args...)
			if _, err := cluster.Kubectl(manifest, apply...); err != nil {
				t.Fatal(err)
			}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
			t.Cleanup(func() { cluster.Delete(t, d) })
			rolledOut(t, "Deployment", name)
			r := restartOf("Deployment", name)
			cluster.Apply(t, r)
			eventuallyRestartIs(t, r, "Suspended")
			tick := request(t, r)
			eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")

			// kubectl diff also shows a change of the status between its two requests.
			framework.Eventually(t, "kubectl diff sees no difference", func() error {
				_, err := cluster.Kubectl(manifest, append([]string{"diff", "-f", "-"}, args...)...)
				return err
			})
			cluster.Refresh(t, d)
			generation := d.Generation
			if out, err := cluster.Kubectl(manifest, apply...); err != nil {
				t.Errorf("kubectl apply: %v\n%s", err, out)
			}
			if err := diff(tick.Format(time.RFC3339), restartedAt(t, d)); err != nil {
				t.Errorf("kubectl apply undid the restart %v", err)
			}
			if d.Generation != generation {
				t.Error("kubectl apply changed the Deployment")
			}
		})
	}
}

// TestRestartDeletedMeanwhile checks that deleting the ScheduledRestart during a restart does not
// affect the workload's rollout.
func TestRestartDeletedMeanwhile(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "deleted", 1)
	d := workload(t, "Deployment", "deleted").(*appsv1.Deployment)
	r := restartOf("Deployment", "deleted")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := request(t, r)
	framework.Eventually(t, "the restart is sent", func() error { return diff(tick.Format(time.RFC3339), restartedAt(t, d)) })
	cluster.Delete(t, r)
	rolledOut(t, "Deployment", "deleted")
	if err := diff(tick.Format(time.RFC3339), restartedAt(t, d)); err != nil {
		t.Errorf("the rollout was changed %v", err)
	}
}

// TestRestartSuspendedMeanwhile checks that a restart in progress completes even if its
// ScheduledRestart is suspended.
func TestRestartSuspendedMeanwhile(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "pausing", 1)
	d := held(t, "pausing")
	r := restartOf("Deployment", "pausing")
	r.Spec.Suspend = false
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Scheduled")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "Restarting")
	cluster.Change(t, r, func() { r.Spec.Suspend = true })
	eventuallyRestart(t, r, framework.Patience, "continues although it is suspended", func() error {
		if r.Status.ObservedGeneration != r.Generation {
			return errors.New("the edit has not been observed yet")
		}
		if r.Status.Active == nil && len(r.Status.History) == 0 {
			return fmt.Errorf("the restart is gone: %+v", r.Status)
		}
		return nil
	})
	eventuallyLetGo(t, d, r, tick)
	eventuallyRestartIs(t, r, "Suspended")
}

// TestRestartWrongInput checks that the API server rejects invalid input if the schema can express
// the rule, and that otherwise the condition Ready reports the mistake.
func TestRestartWrongInput(t *testing.T) {
	cluster.StartManager(t)
	for name, tt := range map[string]struct{ spec, want string }{
		"unknown zone":           {`{targetRef: {kind: Deployment, name: web}, timeZone: Mars/Base}`, "spec.timeZone: Invalid value: \"string\": unknown time zone Mars/Base evaluating rule: timeZone must be the IANA name of a time zone, for instance Europe/Berlin or UTC"},
		"the machine's zone":     {`{targetRef: {kind: Deployment, name: web}, timeZone: Local}`, "timeZone must be the IANA name of a time zone"},
		"a path for a zone":      {`{targetRef: {kind: Deployment, name: web}, timeZone: ../etc/passwd}`, "timeZone must be the IANA name of a time zone"},
		"six fields":             {`{targetRef: {kind: Deployment, name: web}, schedule: "0 0 3 * * *"}`, "schedule must have the five fields of cron"},
		"every":                  {`{targetRef: {kind: Deployment, name: web}, schedule: "@every 1h"}`, "schedule must have the five fields of cron"},
		"a zone in the schedule": {`{targetRef: {kind: Deployment, name: web}, schedule: "TZ=UTC 0 3 * * *"}`, "the time zone does not belong into the schedule: set timeZone"},
		"no such hour":           {`{targetRef: {kind: Deployment, name: web}, schedule: "0 25 * * *"}`, "a field of schedule is wrong: minute is 0-59, hour 0-23"},
		"no schedule":            {`{targetRef: {kind: Deployment, name: web}, schedule: ""}`, "schedule must have the five fields of cron"},
		"a kind we cannot roll":  {`{targetRef: {kind: CronJob, name: web}}`, "apiVersion and kind must be apps/v1 and Deployment, StatefulSet or DaemonSet, or argoproj.io/v1alpha1 and Rollout"},
		"a name that is none":    {`{targetRef: {kind: Deployment, name: Web_1}}`, "name must be the name of a workload"},
		"no target":              {`{schedule: "0 3 * * *"}`, "spec.targetRef: Required value"},
		"negative deadline":      {`{targetRef: {kind: Deployment, name: web}, startingDeadlineSeconds: -1}`, "spec.startingDeadlineSeconds in body should be greater than or equal to 1"},
		"negative spread":        {`{targetRef: {kind: Deployment, name: web}, spreadSeconds: -1}`, "spec.spreadSeconds in body should be greater than or equal to 0"},
		"negative limit":         {`{targetRef: {kind: Deployment, name: web}, failureLimit: -1}`, "spec.failureLimit in body should be greater than or equal to 1"},
		"no such hour to open":   {`{targetRef: {kind: Deployment, name: web}, windows: [{schedule: "0 25 * * *", durationSeconds: 60}]}`, "a field of schedule is wrong: minute is 0-59, hour 0-23"},
		"a window without end":   {`{targetRef: {kind: Deployment, name: web}, windows: [{schedule: "0 2 * * *"}]}`, "spec.windows[0].durationSeconds: Required value"},
		"a window too short":     {`{targetRef: {kind: Deployment, name: web}, windows: [{schedule: "0 2 * * *", durationSeconds: 59}]}`, "spec.windows[0].durationSeconds in body should be greater than or equal to 60"},
		"unknown precondition":   {`{targetRef: {kind: Deployment, name: web}, precondition: Maybe}`, `supported values: "Healthy", "None"`},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "apiVersion: tidekeeper.dev/v1\nkind: ScheduledRestart\nmetadata: {name: wrong, namespace: default}\nspec: " + tt.spec + "\n"
			out, err := cluster.Kubectl(manifest, "apply", "-f", "-")
			if err == nil {
				cluster.Delete(t, restartOf("Deployment", "wrong"))
				t.Fatalf("it was accepted: %s", out)
			}
			if !strings.Contains(out, tt.want) {
				t.Errorf("refused with\n%s\nwant it to say\n%s", out, tt.want)
			}
		})
	}

	for schedule, want := range map[string]string{"0 3 30 2 *": "never", "*/0 3 * * *": "minute"} {
		t.Run(schedule, func(t *testing.T) {
			r := restartOf("Deployment", "wrong")
			r.Spec.Suspend, r.Spec.Schedule = false, tidekeeperv1.CronExpression(schedule)
			cluster.Apply(t, r)
			eventuallyRestartIs(t, r, "InvalidSchedule")
			ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
			if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, want) {
				t.Errorf("Ready is %s: %q; want False, and a message with %q", ready.Status, ready.Message, want)
			}
		})
	}
}

// TestRestartWrongRequest checks that a restart request that cannot be parsed is reported once, and
// has no other effect.
func TestRestartWrongRequest(t *testing.T) {
	cluster.StartManager(t)
	r := restartOf("Deployment", "request")
	r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "now!"}
	cluster.Apply(t, r)
	cluster.EventuallyEvent(t, "ScheduledRestart", "request", `Warning InvalidRequest: the annotation tidekeeper.dev/restart-now must be a time such as 2026-01-31T15:04:05Z, and is "now!"`)
}

// TestRestartWithoutPods checks that the manager does not watch pods only for the history. If no
// controller needs pods, the history has no start-up times.
func TestRestartWithoutPods(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t, "--controllers=scheduled-restart")
	cluster.AddNodes(t, "nopods", 1)
	workload(t, "Deployment", "nopods")
	r := restartOf("Deployment", "nopods")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	record := eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	if record.Pods != 2 || record.PodStartup != nil {
		t.Errorf("record %+v, want a success of 2 pods and nothing about their start-up", record)
	}
	for _, asked := range audit.Requests(t) {
		if asked.Resource == "pods" {
			t.Errorf("pods are read: %s", asked)
		}
	}
}
