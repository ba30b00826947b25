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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// A schedule ticks at most once a minute, so most tests request their restarts. A request is
// handled like an additional tick (scheduled time).

// restartOf returns a suspended ScheduledRestart for a workload with the same name.
func restartOf(kind, name string) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: kind, Name: name}, Suspend: true,
		},
	}
}

// everyMinute enables r with a schedule that ticks every minute, and returns r.
func everyMinute(r *tidekeeperv1.ScheduledRestart) *tidekeeperv1.ScheduledRestart {
	r.Spec.Schedule, r.Spec.Suspend = "* * * * *", false
	return r
}

// request requests a restart for the current time, and returns the time as the restart's tick.
func request(t *testing.T, r *tidekeeperv1.ScheduledRestart) time.Time {
	t.Helper()
	return cluster.RequestRestart(t, r, time.Now())
}

// workload creates a workload of the given kind, with two replicas unless it is a DaemonSet, and
// waits until it is rolled out.
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

// rolledOut waits until a workload is rolled out, with kubectl rollout status.
func rolledOut(t *testing.T, kind, name string) {
	t.Helper()
	if out, err := cluster.Kubectl("", "rollout", "status", strings.ToLower(kind)+"/"+name, framework.LongTimeout); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// restartedAt returns the restartedAt annotation in a workload's pod template, or "".
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

// eventuallyRestart refreshes a ScheduledRestart until the given check returns nil.
func eventuallyRestart(t *testing.T, r *tidekeeperv1.ScheduledRestart, patience time.Duration, what string, check func() error) {
	t.Helper()
	framework.EventuallyWithin(t, patience, "scheduled restart "+r.Name+": "+what, func() error {
		cluster.Refresh(t, r)
		return check()
	})
}

// eventuallyOutcome waits until the latest history record is for the given tick, checks the
// record's outcome and reason, and returns the record.
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

// eventuallyRestartIs waits until the condition Ready has the given reason for the current spec.
func eventuallyRestartIs(t *testing.T, r *tidekeeperv1.ScheduledRestart, reason string) {
	t.Helper()
	eventuallyRestart(t, r, framework.Patience, "is "+reason, func() error {
		return framework.ReadyIs(r.Status.Conditions, r.Generation, reason)
	})
}

// TestRestart_SpecAndStatus checks the spec's fields, the status's conditions, and the printer
// columns of kubectl get.
func TestRestart_SpecAndStatus(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s41", 1)
	workload(t, "Deployment", "s41")
	r := restartOf("Deployment", "s41")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	if err := diff([]any{"0 0 * * *", "UTC", int32(900), int32(1800), int32(3), int32(10)},
		[]any{string(r.Spec.GetSchedule()), r.Spec.TimeZone, r.Spec.StartingDeadlineSeconds, r.Spec.ProgressDeadlineSeconds, r.Spec.FailureLimit, r.Spec.HistoryLimit}); err != nil {
		t.Errorf("defaults %v", err)
	}
	if r.Status.NextScheduleTime != nil {
		t.Errorf("suspended, and its next tick is %s", r.Status.NextScheduleTime)
	}
	cluster.Change(t, r, func() { r.Spec.Schedule = "0 0 * * *" })
	var out string
	for _, name := range []string{"erus", "srestart", "eru"} {
		var err error
		if out, err = cluster.Kubectl("", "get", name, "s41"); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(out, "\n")
	if err := diff([]string{"NAME", "KIND", "TARGET", "SCHEDULE", "SUSPEND", "STATUS", "LAST", "NEXT", "AGE"}, strings.Fields(lines[0])); err != nil {
		t.Errorf("columns %v", err)
	}
	if err := diff([]string{"s41", "Deployment", "s41", "0", "0", "*", "*", "*", "true", "Suspended"}, strings.Fields(lines[1])[:10]); err != nil {
		t.Errorf("kubectl get eru prints %q %v", lines[1], err)
	}
}

// TestRestart_EnableAndEdit checks that enabling or editing a schedule takes effect without a
// restart of the manager.
func TestRestart_EnableAndEdit(t *testing.T) {
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

// TestRestart_EachTickRollsOnce checks that each tick restarts the workload once, and that the pod
// template contains the tick. Ticks are claimed before they are due, and sent when they are due by
// a clock that stands still at the tick.
func TestRestart_EachTickRollsOnce(t *testing.T) {
	hour := time.Now().UTC().Truncate(time.Hour).Add(2 * time.Hour)
	clock := framework.NewStandingClock(t, hour.Add(-30*time.Second))
	cluster.WithClocks(t).StartManager(t, clock.Flag())
	cluster.AddNodes(t, "s45", 1)
	d := workload(t, "Deployment", "s45").(*appsv1.Deployment)
	// The manager's clock determines the ticks from the time at which the schedule is enabled.
	r := suspendedRestart(t, "s45")
	cluster.Change(t, r, func() { everyMinute(r) })
	eventuallyRestartIs(t, r, "Scheduled")
	cluster.Refresh(t, d)
	generation := d.Generation
	for n, tick := range []time.Time{hour, hour.Add(time.Minute)} {
		clock.Set(t, tick.Add(-time.Millisecond))
		eventuallyRestart(t, r, framework.Patience, "has claimed the tick", func() error {
			if active := r.Status.Active; active == nil || !active.ScheduledTime.Time.Equal(tick) {
				return fmt.Errorf("status %+v", r.Status)
			}
			return nil
		})
		if cluster.Refresh(t, d); d.Generation != generation+int64(n) {
			t.Errorf("it was restarted before the tick %s: %v", tick, d.Spec.Template.Annotations)
		}
		clock.Set(t, tick)
		record := eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
		if !record.StartedTime.Time.Equal(tick) {
			t.Errorf("the restart for %s was started at %s", tick, record.StartedTime)
		}
	}
	eachTickOnce(t, r, d, generation)
}

// TestRestart_EachMinuteRollsOnce is [TestRestart_EachTickRollsOnce] with the machine's clock.
func TestRestart_EachMinuteRollsOnce(t *testing.T) {
	framework.OnlyInTestAll(t, "it waits for two full minutes; TestRestart_EachTickRollsOnce sets the clock")
	cluster.StartManager(t)
	cluster.AddNodes(t, "s45m", 1)
	d := workload(t, "Deployment", "s45m").(*appsv1.Deployment)
	r := everyMinute(restartOf("Deployment", "s45m"))
	cluster.Apply(t, r)
	generation := d.Generation
	for n := range 2 {
		eventuallyRestart(t, r, time.Minute+framework.Patience, fmt.Sprintf("has restarted %d times", n+1), func() error { return diff(n+1, len(r.Status.History)) })
	}
	eachTickOnce(t, r, d, generation)
}

// eachTickOnce checks that two ticks of a schedule have restarted two pods each, neither before it
// was due, and that the Deployment was not changed otherwise.
func eachTickOnce(t *testing.T, r *tidekeeperv1.ScheduledRestart, d *appsv1.Deployment, generation int64) {
	t.Helper()
	if len(r.Status.History) != 2 {
		t.Errorf("the history is %+v, want two restarts", r.Status.History)
	}
	for i, record := range r.Status.History {
		if record.Outcome != tidekeeperv1.OutcomeSucceeded || record.ScheduledTime.Second() != 0 || record.Pods != 2 {
			t.Errorf("record %d of the history: %+v, want a success of 2 pods at a whole minute", i, record)
		}
		if record.StartedTime.Before(&record.ScheduledTime) {
			t.Errorf("the restart for %s was started at %s", record.ScheduledTime, record.StartedTime)
		}
	}
	if err := diff(r.Status.History[0].ScheduledTime.UTC().Format(time.RFC3339), restartedAt(t, d)); err != nil {
		t.Errorf("the template carries another tick %v", err)
	}
	if d.Generation != generation+2 {
		t.Errorf("the Deployment was changed %d times, want 2", d.Generation-generation)
	}
	cluster.EventuallyEvent(t, "ScheduledRestart", r.Name, "Normal RestartSucceeded: restarted Deployment "+d.Name+", 2 pods in ")
}

// TestRestart_AllKinds checks that Deployments, StatefulSets and DaemonSets can be restarted.
func TestRestart_AllKinds(t *testing.T) {
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
				t.Errorf("the pod start-up in the record is %+v, want %d pods, and nothing before", s, len(pods))
			}
			if err := diff(tick.Format(time.RFC3339), restartedAt(t, o)); err != nil {
				t.Errorf("the template %v", err)
			}
			for _, uid := range podUIDs(t, name) {
				if slices.Contains(pods, uid) {
					t.Errorf("pod %s was not replaced", uid)
				}
			}
			// Sending the same request again has no effect.
			version := r.ResourceVersion
			cluster.Change(t, r, func() { r.Labels = map[string]string{"touched": "yes"} })
			eventuallyRestartIs(t, r, "Suspended")
			if len(r.Status.History) != 1 {
				t.Errorf("a request was served twice (version %s): %+v", version, r.Status.History)
			}
		})
	}
	// A repeated report increments the existing event's count.
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		name := "s45" + strings.ToLower(kind)
		cluster.EventuallyEvent(t, "ScheduledRestart", name, "Normal RestartSucceeded: restarted "+kind+" "+name+", ")
		events := &corev1.EventList{}
		if err := cluster.List(t.Context(), events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == "ScheduledRestart" && e.InvolvedObject.Name == name && e.Series != nil {
				t.Errorf("a tick was reported again: %s: %s, %d times", e.Reason, e.Message, e.Series.Count)
			}
		}
	}
}

// TestRestartKnowsItsPodsBehindAStaleCache checks that the restart's record has the start-up times
// of all pods, even if the manager learns from the workload's status that they are ready before its
// watch of pods reports that.
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
		t.Errorf("the pod start-up in the record is %+v, want 2 pods", s)
	}
}

// podUIDs returns the UIDs of a workload's non-terminating pods.
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

// TestRestart_ObservedGeneration checks that observedGeneration is the generation of the observed
// spec, and that the status contains no copy of the spec.
func TestRestart_ObservedGeneration(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "s47", 1)
	workload(t, "Deployment", "s47")
	r := restartOf("Deployment", "s47")
	cluster.Apply(t, r)
	for _, schedule := range []tidekeeperv1.CronExpression{"0 1 * * *", "0 2 * * *"} {
		cluster.Change(t, r, func() { r.Spec.Schedule = schedule })
		eventuallyRestart(t, r, framework.Patience, "has seen its spec", func() error { return diff(r.Generation, r.Status.ObservedGeneration) })
	}
	if len(r.Annotations) != 0 {
		t.Errorf("annotations %v, want none", r.Annotations)
	}
}
