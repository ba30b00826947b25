// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// freeze returns a Freeze that ends in an hour.
func freeze(name string) *tidekeeperv1.Freeze {
	return &tidekeeperv1.Freeze{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: time.Now().Add(time.Hour).Truncate(time.Second)}, Reason: "the books are closed"},
	}
}

func eventuallyFreeze(t *testing.T, f *tidekeeperv1.Freeze, what string, check func() error) {
	t.Helper()
	framework.Eventually(t, "freeze "+f.Name+": "+what, func() error {
		cluster.Refresh(t, f)
		return check()
	})
}

func eventuallyFreezeIs(t *testing.T, f *tidekeeperv1.Freeze, reason string) {
	t.Helper()
	eventuallyFreeze(t, f, "is "+reason, func() error { return framework.ReadyIs(f.Status.Conditions, f.Generation, reason) })
}

// isFrozen waits until a ScheduledRestart reports that it waits for the given freeze.
func isFrozen(t *testing.T, r *tidekeeperv1.ScheduledRestart, f *tidekeeperv1.Freeze) {
	t.Helper()
	eventuallyRestartIs(t, r, "Frozen")
	ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
	if want := fmt.Sprintf("waits for Freeze %s until %s: %s", f.Name, f.Spec.Until.UTC().Format(time.RFC3339), f.Spec.Reason); !strings.Contains(ready.Message, want) {
		t.Errorf("the condition of %s says %q, want %q", r.Name, ready.Message, want)
	}
}

// TestFreeze checks that no restart starts while a freeze is in force, but a restart in progress
// continues. The freeze's status must count the restarts that it holds back. When the freeze is
// lifted, these restarts start as the budget allows.
func TestFreeze(t *testing.T) {
	manager := cluster.StartManager(t, "--max-concurrent-restarts=1")
	cluster.AddNodes(t, "frz", 1)
	busy := held(t, "frz-busy")
	var waiting []*tidekeeperv1.ScheduledRestart
	for _, name := range []string{"frz-a", "frz-b"} {
		workload(t, "Deployment", name)
		waiting = append(waiting, suspendedRestart(t, name))
	}
	underWay := suspendedRestart(t, busy.Name)
	tick := request(t, underWay)
	eventuallyRestartIs(t, underWay, "Restarting")
	request(t, waiting[0])
	eventuallyRestartIs(t, waiting[0], "BudgetExhausted")

	f := freeze("frz")
	cluster.Apply(t, f)
	eventuallyFreezeIs(t, f, "InForce")
	cluster.EventuallyEvent(t, "Freeze", "frz", fmt.Sprintf("Normal FreezeBegan: in force until %s: the books are closed", f.Spec.Until.UTC().Format(time.RFC3339)))
	isFrozen(t, waiting[0], f) // This restart previously waited for the budget.
	request(t, waiting[1])
	isFrozen(t, waiting[1], f)
	eventuallyLetGo(t, busy, underWay, tick)
	eventuallyFreeze(t, f, "counts what it holds back", func() error { return diff(tidekeeperv1.HeldBack{Restarts: 2}, f.Status.HeldBack) })
	if got := manager.ReadMetrics(t).SumOf("tidekeeper_freezes", "phase", "InForce"); got != 1 {
		t.Errorf("the metric counts %.0f freezes in force, want 1", got)
	}
	if out, err := cluster.Kubectl("", "get", "freezes", "frz"); err != nil || !strings.Contains(out, "InForce") || !strings.Contains(out, "the books are closed") {
		t.Errorf("kubectl get freezes: %v\n%s", err, out)
	}

	cluster.Delete(t, f)
	for _, r := range waiting {
		eventuallyRestart(t, r, 2*framework.Patience, "is restarted", func() error { return diff(1, len(r.Status.History)) })
	}
	first, second := waiting[0].Status.History[0], waiting[1].Status.History[0]
	if first.StartedTime.After(second.StartedTime.Time) {
		first, second = second, first
	}
	if second.StartedTime.Time.Before(first.CompletedTime.Add(-time.Second)) {
		t.Errorf("one was started at %s and the other one at %s, before the first was complete, at %s: want one after the other",
			first.StartedTime, second.StartedTime, first.CompletedTime)
	}
	framework.Eventually(t, "an event says that it has ended", func() error {
		for _, e := range cluster.Events(t, "Freeze", "frz") {
			if strings.Contains(e, "FreezeEnded: deleted before its end") {
				return nil
			}
		}
		return fmt.Errorf("the events are %q", cluster.Events(t, "Freeze", "frz"))
	})
	manager.AssertSound(t)
}

// TestFreezeEndsByItself checks that a freeze ends at its end time. Restarts that waited then
// start, except those whose deadline has passed meanwhile, which are missed.
func TestFreezeEndsByItself(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "thaw", 1)
	workload(t, "Deployment", "thaw-patient")
	workload(t, "Deployment", "thaw-short")
	patient, short := suspendedRestart(t, "thaw-patient"), restartOf("Deployment", "thaw-short")
	short.Spec.StartingDeadlineSeconds = 1
	cluster.Apply(t, short)
	eventuallyRestartIs(t, short, "Suspended")

	f := freeze("thaw")
	f.Spec.From = &metav1.Time{Time: time.Now().Add(2 * time.Second).Truncate(time.Second)}
	cluster.Apply(t, f)
	eventuallyFreezeIs(t, f, "InForce")
	patientTick, shortTick := request(t, patient), request(t, short)
	isFrozen(t, patient, f)
	record := eventuallyOutcome(t, short, shortTick, tidekeeperv1.OutcomeMissed, "Frozen")
	if !strings.Contains(record.Message, "not started before the deadline: Freeze thaw until ") {
		t.Errorf("the record says %q", record.Message)
	}
	// The status counts while the freeze is in force, at most every ten seconds.
	eventuallyFreeze(t, f, "counts the tick that was missed", func() error { return diff(int32(1), f.Status.HeldBack.MissedTicks) })
	cluster.Change(t, f, func() { f.Spec.Until = metav1.Time{Time: time.Now().Add(3 * time.Second).Truncate(time.Second)} })
	until := f.Spec.Until.Time
	started := eventuallyOutcome(t, patient, patientTick, tidekeeperv1.OutcomeSucceeded, "").StartedTime
	if started.Time.Before(until) {
		t.Errorf("it was started at %s, before the end of the freeze at %s", started, until)
	}
	eventuallyFreezeIs(t, f, "Ended")
	if f.Status.HeldBack.MissedTicks != 1 {
		t.Errorf("it has held back %+v, want one tick that was missed", f.Status.HeldBack)
	}
	framework.Eventually(t, "an event says that it has ended", func() error {
		for _, e := range cluster.Events(t, "Freeze", "thaw") {
			if strings.Contains(e, "FreezeEnded: ended; ") && strings.Contains(e, "ticks missed: 1;") {
				return nil
			}
		}
		return fmt.Errorf("the events are %q", cluster.Events(t, "Freeze", "thaw"))
	})
}

// TestFreezeHoldsInSpiteOfAStaleCache checks that a freeze holds back ticks that were claimed
// before it was created, even if the manager's cache does not contain the freeze.
func TestFreezeHoldsInSpiteOfAStaleCache(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.AddNodes(t, "stale-freeze", 1)
	_, clock, claimed := claimTicks(t, "stale-freeze", 4, "--kubeconfig", proxy.Kubeconfig)
	proxy.Freeze(t, "match: {resources: [freezes.tidekeeper.dev]}")
	f := freeze("stale")
	cluster.Apply(t, f)
	clock.Set(t, claimed[0].tick)
	for _, c := range claimed {
		isFrozen(t, c.restart, f)
		c.isUntouched(t)
	}
	proxy.Thaw(t)
	cluster.Delete(t, f)
	// The manager rereads the freezes from the API server because its last read is more than a
	// second old.
	clock.Set(t, claimed[0].tick.Add(5*time.Second))
	for _, c := range claimed {
		framework.Eventually(t, "it is restarted when the freeze is lifted", func() error { return c.sent(t) })
	}
}

// TestFreezeOfSomeNamespaces checks that a freeze with a namespace selector applies only to
// restarts in the selected namespaces. The namespace's labels at the time of sending the restart
// count.
func TestFreezeOfSomeNamespaces(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	manager := cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	cluster.AddNodes(t, "some", 1)
	inNamespace := func(name string) *tidekeeperv1.ScheduledRestart {
		cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		d := deployment("web", 1, app)
		d.Namespace = name
		cluster.Apply(t, d)
		framework.Eventually(t, "it is rolled out", func() error {
			cluster.Refresh(t, d)
			return diff(int32(1), d.Status.AvailableReplicas)
		})
		r := restartOf("Deployment", "web")
		r.Namespace = name
		cluster.Apply(t, r)
		eventuallyRestartIs(t, r, "Suspended")
		return r
	}
	named, free, labelled := inNamespace("frozen-named"), inNamespace("frozen-not"), inNamespace("frozen-labelled")
	f, g := freeze("some-named"), freeze("some-labelled")
	f.Spec.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{corev1.LabelMetadataName: "frozen-named"}}
	g.Spec.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"example.com/frozen": "yes"}}
	cluster.Apply(t, f)
	cluster.Apply(t, g)
	eventuallyFreezeIs(t, g, "InForce")

	request(t, named)
	isFrozen(t, named, f)
	eventuallyOutcome(t, free, request(t, free), tidekeeperv1.OutcomeSucceeded, "")
	// The manager's cache of namespaces does not contain the new label yet.
	proxy.Freeze(t, "match: {resources: [namespaces]}")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: labelled.Namespace}}
	cluster.Change(t, namespace, func() { metav1.SetMetaDataLabel(&namespace.ObjectMeta, "example.com/frozen", "yes") })
	reconciles := func() float64 {
		return manager.ReadMetrics(t).SumOf("controller_runtime_reconcile_total", "controller", "freeze")
	}
	before := reconciles()
	tick := request(t, labelled)
	isFrozen(t, labelled, g)
	framework.Eventually(t, "both freezes have counted without the label", func() error {
		if more := reconciles() - before; more < 2 {
			return fmt.Errorf("%v reconciles", more)
		}
		return nil
	})
	proxy.Thaw(t)
	eventuallyFreeze(t, g, "counts only its own", func() error { return diff(tidekeeperv1.HeldBack{Restarts: 1}, g.Status.HeldBack) })
	// A namespace without the label is not frozen.
	cluster.Change(t, namespace, func() { delete(namespace.Labels, "example.com/frozen") })
	eventuallyOutcome(t, labelled, tick, tidekeeperv1.OutcomeSucceeded, "")
}

// TestFreezeHoldsBackNoExecute checks that no node gets a pool's NoExecute taint while a freeze is
// in force, regardless of the freeze's namespace selector.
func TestFreezeHoldsBackNoExecute(t *testing.T) {
	cluster.StartManager(t, "--no-execute-interval=1s")
	addMembers(t, "frosty", 2)
	d := deployment("frosty", 2, corev1.PodSpec{NodeSelector: map[string]string{role("frosty"): ""}, Containers: app.Containers})
	cluster.Apply(t, d)
	eventuallyReady(t, d)
	f := freeze("frosty")
	f.Spec.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"example.com/none": "yes"}}
	cluster.Apply(t, f)
	eventuallyFreezeIs(t, f, "InForce")

	p := framework.Pool("frosty")
	p.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/frosty": "10"}
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/frosty", Effect: corev1.TaintEffectNoExecute}}
	cluster.Apply(t, p)
	want := fmt.Sprintf("2 of 2 nodes do not match the pool's spec yet; 2 of them wait for Freeze frosty until %s: the books are closed", f.Spec.Until.UTC().Format(time.RFC3339))
	eventuallyPool(t, "frosty", "waits", func(p *tidekeeperv1.NodePool) error {
		if err := is(p, "OutOfSync"); err != nil {
			return err
		}
		return diff(fmt.Sprint(want, 2), fmt.Sprint(meta.FindStatusCondition(p.Status.Conditions, "Ready").Message, p.Status.HeldBackNodes))
	})
	eventuallyFreeze(t, f, "counts the nodes", func() error { return diff(tidekeeperv1.HeldBack{Nodes: 2}, f.Status.HeldBack) })
	for _, node := range []string{"frosty-1", "frosty-2"} {
		framework.Eventually(t, "node "+node+" has the label of the pool", func() error {
			got := shapeOf(t, node)
			if len(got.Taints) > 0 {
				t.Errorf("node %s has the taints %v", node, got.Taints)
			}
			return diff(map[string]string{"example.com/frosty": "10"}, got.Labels)
		})
	}
	cluster.Delete(t, f)
	healthyWith(t, "frosty", 2)
}

// TestFreezeIsNotLiftedByThoseItHoldsBack checks that users who may edit ScheduledRestarts, through
// Tidekeeper's role or through Kubernetes' role admin, can neither lift nor edit a freeze. Users
// with the role tidekeeper-freeze-edit can.
func TestFreezeIsNotLiftedByThoseItHoldsBack(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "lift", 1)
	d := workload(t, "Deployment", "lift").(*appsv1.Deployment)
	f := freeze("lift")
	cluster.Apply(t, f)
	eventuallyFreezeIs(t, f, "InForce")
	cluster.Refresh(t, d)
	generation := d.Generation

	tom := user(t, "tom", bindRole("tom", "admin"), bindRole("tom", "tidekeeper-scheduledrestart-edit"), bindInCluster("tom", "edit"))
	ann := user(t, "ann", bindInCluster("ann", "tidekeeper-freeze-edit"))
	r := restartFor("Deployment", "lift", "lift")
	framework.Eventually(t, "tom may make a ScheduledRestart", func() error { return tom.Create(t.Context(), r) })
	t.Cleanup(func() { cluster.Delete(t, r) })
	r.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: time.Now().UTC().Format(time.RFC3339)}
	framework.Eventually(t, "tom may request a restart", func() error {
		return tom.Patch(t.Context(), r, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"%s":"%s"}}}`, tidekeeperv1.RestartNowAnnotation, time.Now().UTC().Format(time.RFC3339))))
	})
	isFrozen(t, r, f)
	for what, try := range map[string]func(client.Client) error{
		"delete it": func(c client.Client) error { return c.Delete(t.Context(), f.DeepCopy(), client.DryRunAll) },
		"delete all": func(c client.Client) error {
			return c.DeleteAllOf(t.Context(), &tidekeeperv1.Freeze{}, client.DryRunAll)
		},
		"shorten it": func(c client.Client) error {
			return c.Patch(t.Context(), f.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"until":"%s"}}`, time.Now().Add(time.Minute).UTC().Format(time.RFC3339))), client.DryRunAll)
		},
		"write one": func(c client.Client) error {
			return c.Create(t.Context(), freeze("lift-other"), client.DryRunAll)
		},
	} {
		if err := try(tom); !apierrors.IsForbidden(err) {
			t.Errorf("tom, who may edit ScheduledRestarts, may %s: %v", what, err)
		}
		framework.Eventually(t, "ann, who may edit Freezes, may "+what, func() error { return try(ann) })
	}
	if err := ann.Delete(t.Context(), r.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("ann, who may edit Freezes, may delete a ScheduledRestart: %v", err)
	}
	for what, c := range map[string]client.Client{"tom": tom, "ann": ann} {
		status := f.DeepCopy()
		if err := c.Status().Patch(t.Context(), status, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"heldBack":{"nodes":7}}}`)), client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("%s may write the status: %v", what, err)
		}
	}
	if cluster.Refresh(t, d); d.Generation != generation {
		t.Error("the workload was restarted in spite of the freeze")
	}
	if err := ann.Delete(t.Context(), f); err != nil {
		t.Error(err)
	}
	eventuallyRestart(t, r, framework.Patience, "is restarted", func() error { return diff(1, len(r.Status.History)) })
}

// TestWrongFreezesAreRefused checks that the API server rejects invalid Freezes with an error that
// names the mistake.
func TestWrongFreezesAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, spec, want string }{
		{"no end", "reason: x", "spec.until: Required value"},
		{"no reason", "until: 2099-01-01T00:00:00Z", "spec.reason: Required value"},
		{"an empty reason", "until: 2099-01-01T00:00:00Z\n  reason: ''", "spec.reason"},
		{"a blank reason", "until: 2099-01-01T00:00:00Z\n  reason: '  '", "reason must be one line that is not blank"},
		{"a reason of two lines", "until: 2099-01-01T00:00:00Z\n  reason: \"a\\nb\"", "reason must be one line that is not blank"},
		{"a long reason", "until: 2099-01-01T00:00:00Z\n  reason: " + strings.Repeat("x", 257), "spec.reason: Too long"},
		{"it ends before it begins", "from: 2099-01-02T00:00:00Z\n  until: 2099-01-01T00:00:00Z\n  reason: x", "until must be later than from"},
		{"not a time", "until: tomorrow\n  reason: x", "spec.until"},
		{"an unknown operator", "until: 2099-01-01T00:00:00Z\n  reason: x\n  namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}", `spec.namespaceSelector.matchExpressions[0].operator: Unsupported value: "Like"`},
		{"In without values", "until: 2099-01-01T00:00:00Z\n  reason: x\n  namespaceSelector: {matchExpressions: [{key: a, operator: In}]}", "In and NotIn need values; Exists and DoesNotExist take none"},
		{"a label with a space", "until: 2099-01-01T00:00:00Z\n  reason: x\n  namespaceSelector: {matchLabels: {a: 'b c'}}", "a label value must be at most 63 letters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := cluster.Kubectl("apiVersion: tidekeeper.dev/v1\nkind: Freeze\nmetadata: {name: wrong}\nspec:\n  "+tt.spec+"\n", "apply", "--dry-run=server", "--validate=strict", "-f", "-")
			if err == nil || !strings.Contains(out, tt.want) {
				t.Errorf("%v\n%s\nwant it to say\n%s", err, out, tt.want)
			}
		})
	}
}
