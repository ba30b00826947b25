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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// A schedule cannot tick sooner than in a minute, so most tests ask for their
// restarts: a request is one more tick under the same rules.

// restartOf makes a suspended ScheduledRestart of a workload, with its name.
func restartOf(kind, name string) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: kind, Name: name}, Suspend: true,
		},
	}
}

// everyMinute enables a schedule that ticks each minute.
func everyMinute(r *tidekeeperv1.ScheduledRestart) *tidekeeperv1.ScheduledRestart {
	r.Spec.Schedule, r.Spec.Suspend = "* * * * *", false
	return r
}

// request asks for a restart, and returns the tick.
func request(t *testing.T, r *tidekeeperv1.ScheduledRestart) time.Time {
	t.Helper()
	return cluster.RequestRestart(t, r, time.Now())
}

// workload makes a workload of a kind and waits until it is up.
func workload(t *testing.T, kind, name string) client.Object {
	t.Helper()
	d := deployment(name, 2, app)
	var o client.Object = d
	switch kind {
	case "StatefulSet":
		o = &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}}
	case "DaemonSet":
		o = &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}}
	}
	cluster.Apply(t, o)
	rolledOut(t, kind, name)
	return o
}

// rolledOut waits as kubectl does.
func rolledOut(t *testing.T, kind, name string) {
	t.Helper()
	if out, err := cluster.Kubectl("", "rollout", "status", strings.ToLower(kind)+"/"+name, "--timeout=60s"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// restartedAt returns what the pod template of a workload says.
func restartedAt(t *testing.T, o client.Object) string {
	t.Helper()
	cluster.Refresh(t, o)
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation]
	case *appsv1.StatefulSet:
		return o.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation]
	default:
		return o.(*appsv1.DaemonSet).Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation]
	}
}

// eventuallyRestart waits until the check accepts the ScheduledRestart.
func eventuallyRestart(t *testing.T, r *tidekeeperv1.ScheduledRestart, patience time.Duration, what string, check func() error) {
	t.Helper()
	framework.EventuallyWithin(t, patience, "scheduled restart "+r.Name+": "+what, func() error {
		cluster.Refresh(t, r)
		return check()
	})
}

// eventuallyOutcome waits until the history begins with the outcome of a tick.
func eventuallyOutcome(t *testing.T, r *tidekeeperv1.ScheduledRestart, tick time.Time, outcome tidekeeperv1.Outcome, reason string) tidekeeperv1.RestartRecord {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "has its outcome", func() error {
		if len(r.Status.History) == 0 {
			return fmt.Errorf("no history yet; conditions %v", r.Status.Conditions)
		}
		last := r.Status.History[0]
		return diff(fmt.Sprint(outcome, " ", reason, " ", tick.UTC()), fmt.Sprint(last.Outcome, " ", last.Reason, " ", last.ScheduledTime.UTC()))
	})
	return r.Status.History[0]
}

// eventuallyRestartIs waits until the condition Ready has the reason, for the
// spec as it is now.
func eventuallyRestartIs(t *testing.T, r *tidekeeperv1.ScheduledRestart, reason string) {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "is "+reason, func() error {
		return framework.ReadyIs(r.Status.Conditions, r.Generation, reason)
	})
}

// The spec has a target, a switch and a schedule; the status says how it is,
// with conditions and columns.
func TestS4_1_SpecAndStatus(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s41", 1)
	workload(t, "Deployment", "s41")
	r := restartOf("Deployment", "s41")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	if err := diff([]any{"0 0 * * *", "UTC", int32(900), int32(1800), int32(3), int32(10)},
		[]any{r.Spec.Schedule, r.Spec.TimeZone, r.Spec.StartingDeadlineSeconds, r.Spec.ProgressDeadlineSeconds, r.Spec.FailureLimit, r.Spec.HistoryLimit}); err != nil {
		t.Errorf("defaults %v", err)
	}
	if r.Status.NextScheduleTime != nil {
		t.Errorf("suspended, and its next tick is %s", r.Status.NextScheduleTime)
	}
	out, err := cluster.Kubectl("", "get", "eru", "s41")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	if err := diff([]string{"NAME", "TARGET", "SCHEDULE", "SUSPEND", "STATUS", "LAST", "NEXT", "AGE"}, strings.Fields(lines[0])); err != nil {
		t.Errorf("columns %v", err)
	}
	if err := diff([]string{"s41", "s41", "0", "0", "*", "*", "*", "true", "Suspended"}, strings.Fields(lines[1])[:9]); err != nil {
		t.Errorf("kubectl get eru prints %q %v", lines[1], err)
	}
}

// An enabled schedule takes effect without a restart of the manager, and so
// does an edited one.
func TestS4_4_EnableAndEdit(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s44", 1)
	workload(t, "Deployment", "s44")
	r := restartOf("Deployment", "s44")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	next := func(want time.Time) {
		t.Helper()
		eventuallyRestart(t, r, framework.Patience, "has its next tick", func() error {
			if r.Status.NextScheduleTime == nil {
				return errors.New("it has none")
			}
			return diff(want.UTC().String(), r.Status.NextScheduleTime.UTC().String())
		})
	}
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	cluster.Change(t, r, func() { r.Spec.Suspend = false })
	next(midnight)
	cluster.Change(t, r, func() { r.Spec.Schedule = "@yearly" })
	next(time.Date(midnight.Add(-time.Second).Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC))
	cluster.Change(t, r, func() { r.Spec.TimeZone = "Asia/Tokyo" })
	next(time.Date(time.Now().Add(9*time.Hour).UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Add(-9 * time.Hour))
	cluster.Change(t, r, func() { r.Spec.Suspend = true })
	eventuallyRestartIs(t, r, "Suspended")
	if r.Status.NextScheduleTime != nil {
		t.Errorf("suspended, and its next tick is %s", r.Status.NextScheduleTime)
	}
}

// Each tick rolls the workload, once, with the tick as its mark.
func TestS4_5_EachTickRollsOnce(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s45", 1)
	d := workload(t, "Deployment", "s45").(*appsv1.Deployment)
	r := everyMinute(restartOf("Deployment", "s45"))
	cluster.Apply(t, r)
	generation := d.Generation
	for n := range 2 {
		eventuallyRestart(t, r, 90*time.Second, fmt.Sprintf("has restarted %d times", n+1), func() error { return diff(n+1, len(r.Status.History)) })
	}
	for i, record := range r.Status.History {
		if record.Outcome != tidekeeperv1.OutcomeSucceeded || record.ScheduledTime.Second() != 0 || record.Pods != 2 {
			t.Errorf("record %d of the history: %+v, want a success of 2 pods at a whole minute", i, record)
		}
		if late := record.StartedTime.Sub(record.ScheduledTime.Time); late < 0 || late > 5*time.Second {
			t.Errorf("the tick of %s was started %s after it", record.ScheduledTime, late)
		}
	}
	if err := diff(r.Status.History[0].ScheduledTime.UTC().Format(time.RFC3339), restartedAt(t, d)); err != nil {
		t.Errorf("the template carries another tick %v", err)
	}
	if d.Generation != generation+2 {
		t.Errorf("the Deployment was changed %d times, want 2", d.Generation-generation)
	}
	cluster.EventuallyEvent(t, "ScheduledRestart", "s45", "Normal RestartSucceeded: restarted Deployment s45, 2 pods in ")
}

// All three kinds can be rolled.
func TestS4_5_AllKinds(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s45k", 2)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			name := "s45" + strings.ToLower(kind)
			o := workload(t, kind, name)
			pods := podUIDs(t, name)
			r := restartOf(kind, name)
			cluster.Apply(t, r)
			eventuallyRestartIs(t, r, "Suspended")
			tick := request(t, r)
			record := eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
			if record.Trigger != tidekeeperv1.TriggerRequest || int(record.Pods) != len(pods) {
				t.Errorf("record %+v, want a request, %d pods", record, len(pods))
			}
			if s := record.PodStartup; s == nil || int(s.Pods) != len(pods) || s.MedianChangeSeconds != nil {
				t.Errorf("the record says of its pods' start-up %+v, want that of %d, and nothing before", s, len(pods))
			}
			if err := diff(tick.Format(time.RFC3339), restartedAt(t, o)); err != nil {
				t.Errorf("the template %v", err)
			}
			for _, uid := range podUIDs(t, name) {
				if slices.Contains(pods, uid) {
					t.Errorf("pod %s was not replaced", uid)
				}
			}
			// The same request again is served already.
			version := r.ResourceVersion
			cluster.Change(t, r, func() { r.Labels = map[string]string{"touched": "yes"} })
			eventuallyRestartIs(t, r, "Suspended")
			if len(r.Status.History) != 1 {
				t.Errorf("a request was served twice (version %s): %+v", version, r.Status.History)
			}
		})
	}
}

// A workload may say that all of its pods are ready before the watch of pods does:
// the record tells how all of them came up nevertheless.
func TestRestartKnowsItsPodsBehindAStaleCache(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	cluster.AddNodes(t, "stale", 1)
	workload(t, "Deployment", "stale")
	r := restartOf("Deployment", "stale")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	proxy.Freeze(t, "match: {resources: [pods]}")
	record := eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	if s := record.PodStartup; s == nil || s.Pods != 2 {
		t.Errorf("the record says of its pods' start-up %+v, want that of 2", s)
	}
}

// podUIDs returns the UIDs of the pods of a workload that are not going.
func podUIDs(t *testing.T, app string) []string {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	var uids []string
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			uids = append(uids, string(p.UID))
		}
	}
	return uids
}

// The spec is not mirrored anywhere: observedGeneration says what was seen.
func TestS4_7_ObservedGeneration(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s47", 1)
	workload(t, "Deployment", "s47")
	r := restartOf("Deployment", "s47")
	cluster.Apply(t, r)
	for _, schedule := range []string{"0 1 * * *", "0 2 * * *"} {
		cluster.Change(t, r, func() { r.Spec.Schedule = schedule })
		eventuallyRestart(t, r, framework.Patience, "has seen its spec", func() error { return diff(r.Generation, r.Status.ObservedGeneration) })
	}
	if len(r.Annotations) != 0 {
		t.Errorf("annotations %v, want none", r.Annotations)
	}
}

// A write that meets somebody else's is tried again, on what that one wrote.
func TestS4_8_ConflictsAreRetried(t *testing.T) {
	manager := cluster.StartManager(t)
	cluster.AddNodes(t, "s48", 1)
	d := workload(t, "Deployment", "s48").(*appsv1.Deployment)
	r := restartOf("Deployment", "s48")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	// Somebody writes to both without pause.
	stop, stopped := make(chan struct{}), make(chan struct{})
	both := []client.Object{d.DeepCopy(), r.DeepCopy()}
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/n":"%d"}}}`, i))
			for _, o := range both {
				if err := cluster.Patch(t.Context(), o, patch); err != nil {
					t.Errorf("write beside the manager: %v", err)
					return
				}
			}
		}
	}()
	for range 3 {
		tick := request(t, r)
		eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
		framework.Eventually(t, "a second has passed", func() error {
			if !time.Now().Truncate(time.Second).After(tick) {
				return errors.New("it has not")
			}
			return nil
		})
	}
	close(stop)
	<-stopped
	manager.Stop(t)
	if len(r.Status.History) != 3 {
		t.Errorf("history %+v, want three restarts", r.Status.History)
	}
}

// What is broken is not restarted, and the tick says why.
func TestRestartLeavesBrokenAlone(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "broken", 1)
	d := deployment("broken", 2, app)
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/behavior": "never-ready"}
	cluster.Apply(t, d)
	r := restartOf("Deployment", "broken")
	r.Spec.StartingDeadlineSeconds = 3
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "TargetUnhealthy")
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeMissed, "TargetUnhealthy")
	if got := restartedAt(t, d); got != "" {
		t.Errorf("it was restarted, at %s", got)
	}
	cluster.EventuallyEvent(t, "ScheduledRestart", "broken", "Warning RestartMissed: TargetUnhealthy: until the deadline Deployment broken is not healthy")

	cluster.Change(t, r, func() { r.Spec.Precondition = tidekeeperv1.PreconditionNone; r.Spec.ProgressDeadlineSeconds = 3 })
	tick = request(t, r)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeFailed, "Timeout")
	if err := diff(tick.Format(time.RFC3339), restartedAt(t, d)); err != nil {
		t.Errorf("without a precondition it is not restarted %v", err)
	}
}

// A gate that opens lets the tick through at once: it is watched, not polled.
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

// A budget of one lets one restart after the other through, by their ticks.
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
	slices.SortFunc(restarts, func(a, b *tidekeeperv1.ScheduledRestart) int {
		return a.Status.History[0].StartedTime.Compare(b.Status.History[0].StartedTime.Time)
	})
	for i := 1; i < len(restarts); i++ {
		before, after := restarts[i-1].Status.History[0], restarts[i].Status.History[0]
		if after.StartedTime.Before(&before.CompletedTime) {
			t.Errorf("%s was started at %s, before %s was complete at %s", restarts[i].Name, after.StartedTime, restarts[i-1].Name, before.CompletedTime)
		}
	}
}

// A target that does not exist is told, waited for, and never deletes what a
// person wrote.
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

// After a restart, what GitOps tools do neither undoes it nor conflicts.
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

			if out, err := cluster.Kubectl(manifest, append([]string{"diff", "-f", "-"}, args...)...); err != nil {
				t.Errorf("kubectl diff sees a difference: %v\n%s", err, out)
			}
			cluster.Refresh(t, d)
			generation := d.Generation
			if out, err := cluster.Kubectl(manifest, apply...); err != nil {
				t.Errorf("kubectl apply: %v\n%s", err, out)
			}
			if err := diff(tick.Format(time.RFC3339), restartedAt(t, d)); err != nil {
				t.Errorf("kubectl apply took the restart back %v", err)
			}
			if d.Generation != generation {
				t.Error("kubectl apply changed the Deployment")
			}
		})
	}
}

// Deleting the object during a restart leaves the rollout alone.
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
		t.Errorf("the rollout was not left alone %v", err)
	}
}

// Suspending during a restart lets it finish.
func TestRestartSuspendedMeanwhile(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "pausing", 1)
	d := deployment("pausing", 2, app)
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/containers-ready-after": "2s"}
	cluster.Apply(t, d)
	rolledOut(t, "Deployment", "pausing")
	r := restartOf("Deployment", "pausing")
	r.Spec.Suspend = false
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Scheduled")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "Restarting")
	cluster.Change(t, r, func() { r.Spec.Suspend = true })
	eventuallyRestart(t, r, framework.Patience, "goes on although it is suspended", func() error {
		if r.Status.ObservedGeneration != r.Generation {
			return errors.New("the edit was not seen yet")
		}
		if r.Status.Active == nil && len(r.Status.History) == 0 {
			return fmt.Errorf("the restart is gone: %+v", r.Status)
		}
		return nil
	})
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	eventuallyRestartIs(t, r, "Suspended")
}

// Wrong input is refused by the API server in one answer where the schema can
// say it, and else told by the condition Ready.
func TestRestartWrongInput(t *testing.T) {
	cluster.StartManager(t)
	for name, tt := range map[string]struct{ spec, want string }{
		"unknown zone":           {`{targetRef: {kind: Deployment, name: web}, timeZone: Mars/Base}`, "spec.timeZone: Invalid value: \"string\": unknown time zone Mars/Base evaluating rule: timeZone must be the IANA name of a time zone, for instance Europe/Berlin or UTC"},
		"the machine's zone":     {`{targetRef: {kind: Deployment, name: web}, timeZone: Local}`, "timeZone must be the IANA name of a time zone"},
		"a path for a zone":      {`{targetRef: {kind: Deployment, name: web}, timeZone: ../etc/passwd}`, "timeZone must be the IANA name of a time zone"},
		"six fields":             {`{targetRef: {kind: Deployment, name: web}, schedule: "0 0 3 * * *"}`, "schedule must have the five fields of cron"},
		"every":                  {`{targetRef: {kind: Deployment, name: web}, schedule: "@every 1h"}`, "schedule must have the five fields of cron"},
		"a zone in the schedule": {`{targetRef: {kind: Deployment, name: web}, schedule: "TZ=UTC 0 3 * * *"}`, "the time zone does not belong into the schedule: set timeZone"},
		"no schedule":            {`{targetRef: {kind: Deployment, name: web}, schedule: ""}`, "schedule must have the five fields of cron"},
		"a kind we cannot roll":  {`{targetRef: {kind: CronJob, name: web}}`, `spec.targetRef.kind: Unsupported value: "CronJob": supported values: "Deployment", "StatefulSet", "DaemonSet"`},
		"a name that is none":    {`{targetRef: {kind: Deployment, name: Web_1}}`, "name must be the name of a workload"},
		"no target":              {`{schedule: "0 3 * * *"}`, "spec.targetRef: Required value"},
		"negative deadline":      {`{targetRef: {kind: Deployment, name: web}, startingDeadlineSeconds: -1}`, "spec.startingDeadlineSeconds in body should be greater than or equal to 1"},
		"negative spread":        {`{targetRef: {kind: Deployment, name: web}, spreadSeconds: -1}`, "spec.spreadSeconds in body should be greater than or equal to 0"},
		"negative limit":         {`{targetRef: {kind: Deployment, name: web}, failureLimit: -1}`, "spec.failureLimit in body should be greater than or equal to 1"},
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

	for schedule, want := range map[string]string{"0 3 30 2 *": "never", "99 3 * * *": "minute"} {
		t.Run(schedule, func(t *testing.T) {
			r := restartOf("Deployment", "wrong")
			r.Spec.Suspend, r.Spec.Schedule = false, schedule
			cluster.Apply(t, r)
			eventuallyRestartIs(t, r, "InvalidSchedule")
			ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
			if ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, want) {
				t.Errorf("Ready is %s: %q; want False, and something about %q", ready.Status, ready.Message, want)
			}
		})
	}
}

// A request in words that cannot be understood is told once, and does nothing.
func TestRestartWrongRequest(t *testing.T) {
	cluster.StartManager(t)
	r := restartOf("Deployment", "request")
	r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "now!"}
	cluster.Apply(t, r)
	cluster.EventuallyEvent(t, "ScheduledRestart", "request", `Warning InvalidRequest: the annotation tidekeeper.dev/restart-now must be a time such as 2026-01-31T15:04:05Z, and is "now!"`)
}

// Without a controller that watches pods they are not watched for the sake of
// the history, which then says nothing about their start-up.
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
			t.Errorf("pods are asked for: %s", asked)
		}
	}
}
