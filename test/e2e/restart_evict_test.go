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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// evictionOf returns a suspended ScheduledRestart that restarts a workload by evicting its pods.
func evictionOf(kind, name string) *tidekeeperv1.ScheduledRestart {
	r := restartOf(kind, name)
	r.Spec.Method = tidekeeperv1.MethodEvict
	return r
}

// standing returns a workload's non-terminating pods.
func standing(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": name}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// older returns the UIDs of a workload's pods. It first waits until a tick that is requested now
// would be later than their creation times, which are in whole seconds.
func older(t *testing.T, name string) (uids []types.UID) {
	t.Helper()
	for _, pod := range standing(t, name) {
		uids = append(uids, pod.UID)
	}
	nextSecond(t)
	return uids
}

// allEvicted checks that a workload has the same number of pods as `before`, that all of them are
// new, and that its template was not changed.
func allEvicted(t *testing.T, o client.Object, name string, before []types.UID, generation int64) {
	t.Helper()
	after := standing(t, name)
	for _, pod := range after {
		if slices.Contains(before, pod.UID) {
			t.Errorf("%s was not evicted", pod.Name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %d pods, want %d", len(after), len(before))
	}
	if at := restartedAt(t, o); at != "" || o.GetGeneration() != generation {
		t.Errorf("the workload was changed: it is of generation %d, restarted at %q", o.GetGeneration(), at)
	}
}

// TestEvict checks that all pods of each kind of workload are evicted, exactly once each. This
// includes workloads whose update strategy replaces no pods; if their template has changed, the new
// pods have the new template.
func TestEvict(t *testing.T) {
	cluster.AddNodes(t, "evicted", 2)
	audit := cluster.Audit(t, "tidekeeper/")
	manager := cluster.StartManager(t)
	type one struct {
		o          client.Object
		r          *tidekeeperv1.ScheduledRestart
		tick       time.Time
		pods       []types.UID
		generation int64
	}
	var all []*one
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		name := "evicted-" + strings.ToLower(kind)
		w := &one{o: workload(t, kind, name), r: evictionOf(kind, name)}
		change := func(template *corev1.PodTemplateSpec) { template.Labels["example.com/new"] = "yes" }
		switch o := w.o.(type) {
		case *appsv1.StatefulSet:
			cluster.Change(t, o, func() {
				o.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
				change(&o.Spec.Template)
			})
		case *appsv1.DaemonSet:
			cluster.Change(t, o, func() {
				o.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
				change(&o.Spec.Template)
			})
		}
		w.generation, w.pods = w.o.GetGeneration(), older(t, name)
		cluster.Apply(t, w.r)
		eventuallyRestartIs(t, w.r, "Suspended")
		all = append(all, w)
	}
	for _, w := range all {
		w.tick = request(t, w.r)
	}
	for _, w := range all {
		record := eventuallyOutcome(t, w.r, w.tick, tidekeeperv1.OutcomeSucceeded, "")
		if record.Pods != int32(len(w.pods)) || record.PodStartup == nil || record.PodStartup.Pods != record.Pods {
			t.Errorf("%s: the record is %+v, want %d pods and how long they took", w.r.Name, record, len(w.pods))
		}
		allEvicted(t, w.o, w.r.Name, w.pods, w.generation)
		for _, pod := range standing(t, w.r.Name) {
			if want := w.generation > 1; want != (pod.Labels["example.com/new"] == "yes") {
				t.Errorf("%s has the labels %v", pod.Name, pod.Labels)
			}
		}
	}
	manager.AssertIdle(t)
	evictions := 0
	for _, r := range audit.Requests(t) {
		if r.Resource == "pods" && r.Subresource == "eviction" {
			evictions++
		}
	}
	if evictions != 6 {
		t.Errorf("%d evictions were requested, want one of each pod", evictions)
	}
}

// budgetOf creates a PodDisruptionBudget for a workload, and waits until the budget's status counts
// the workload's pods.
func budgetOf(t *testing.T, name string, minAvailable int32) *policyv1.PodDisruptionBudget {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-budget", Namespace: metav1.NamespaceDefault},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(minAvailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	cluster.Apply(t, b)
	framework.Eventually(t, "the budget is in force", func() error {
		cluster.Refresh(t, b)
		return diff([]any{b.Generation, int32(2)}, []any{b.Status.ObservedGeneration, b.Status.CurrentHealthy})
	})
	return b
}

// TestEvictAndBudgets checks that evictions respect PodDisruptionBudgets. A restart waits while a
// budget temporarily allows no eviction. A budget that never allows an eviction fails the restart,
// and the restart's record names the budget.
func TestEvictAndBudgets(t *testing.T) {
	cluster.AddNodes(t, "budgeted", 1)
	manager := cluster.StartManager(t)
	d := workload(t, "Deployment", "budgeted").(*appsv1.Deployment)
	b := budgetOf(t, "budgeted", 2)
	r := evictionOf("Deployment", "budgeted")
	r.Spec.MaxUnavailable = new(intstr.FromString("100%"))
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	before := older(t, "budgeted")
	tick := request(t, r)
	refused := func() error {
		ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != "Restarting" || !strings.Contains(ready.Message, "budgeted-budget") {
			return fmt.Errorf("the condition is %+v", ready)
		}
		return nil
	}
	eventuallyRestart(t, r, framework.Patience, "says which budget it waits for", refused)
	framework.Eventually(t, "the metric says for how long evictions have been refused", func() error {
		if seconds := manager.ReadMetrics(t).Sum("tidekeeper_restart_evictions_refused_seconds"); seconds <= 0 {
			return fmt.Errorf("it says %v s", seconds)
		}
		return nil
	})
	if err := diff(len(before), len(standing(t, "budgeted"))); err != nil {
		t.Errorf("pods were evicted: %v", err)
	}
	cluster.Change(t, b, func() { b.Spec.MinAvailable = new(intstr.FromInt32(1)) })
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	allEvicted(t, d, "budgeted", before, d.Generation)

	cluster.Change(t, b, func() { b.Spec.MinAvailable = new(intstr.FromInt32(2)) })
	framework.Eventually(t, "the budget is observed", func() error {
		cluster.Refresh(t, b)
		return diff([]any{b.Generation, int32(0)}, []any{b.Status.ObservedGeneration, b.Status.DisruptionsAllowed})
	})
	before = older(t, "budgeted")
	cluster.Change(t, r, func() { r.Spec.ProgressDeadlineSeconds = 5 })
	tick = request(t, r)
	record := eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeFailed, "EvictionRefused")
	metrics := manager.ReadMetrics(t)
	for result, want := range map[string]float64{"Accepted": 2, "Refused": 2, "Error": 0} {
		if got := metrics.SumOf("tidekeeper_restart_evictions_total", "result", result); got < want || got > 0 && want == 0 {
			t.Errorf("%v evictions are counted as %s, want %v or more", got, result, want)
		}
	}
	if !strings.Contains(record.Message, "budgeted-budget") || !strings.Contains(record.Message, "2 pods are older than the tick") {
		t.Errorf("the record says %q", record.Message)
	}
	for _, pod := range standing(t, "budgeted") {
		if !slices.Contains(before, pod.UID) {
			t.Errorf("%s is new", pod.Name)
		}
	}
}

// TestEvictAfterAKill checks that, after a manager was killed, the next manager continues its
// restart by eviction, under the same tick.
func TestEvictAfterAKill(t *testing.T) {
	cluster.AddNodes(t, "killed", 1)
	manager := cluster.StartManager(t)
	d := workload(t, "Deployment", "killed").(*appsv1.Deployment)
	b := budgetOf(t, "killed", 2)
	r := evictionOf("Deployment", "killed")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	before := older(t, "killed")
	tick := request(t, r)
	eventuallyRestart(t, r, framework.Patience, "is under way", func() error {
		if r.Status.Active == nil || r.Status.Active.Eviction == nil || r.Status.Active.Eviction.Refused == "" {
			return errors.New("it is not")
		}
		return nil
	})
	manager.Kill(t)
	// An edit during a restart affects only the next restart.
	cluster.Change(t, r, func() { r.Spec.Method = tidekeeperv1.MethodRollout })
	cluster.Delete(t, b)
	cluster.StartManager(t)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	allEvicted(t, d, "killed", before, d.Generation)
}

// TestEvictIsValidated checks that invalid combinations of fields are rejected with a clear message
// of one line.
func TestEvictIsValidated(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*tidekeeperv1.ScheduledRestartSpec)
		want   string
	}{
		"unknown method":     {func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method = "Delete" }, `spec.method: Unsupported value: "Delete": supported values: "Rollout", "Evict"`},
		"zero":               {func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxUnavailable = new(intstr.FromInt32(0)) }, "maxUnavailable must be a number from 1 on, or a percentage from 1% to 100%"},
		"too many percent":   {func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxUnavailable = new(intstr.FromString("101%")) }, "maxUnavailable must be a number from 1 on, or a percentage from 1% to 100%"},
		"a number in a text": {func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxUnavailable = new(intstr.FromString("2")) }, "maxUnavailable must be a number from 1 on, or a percentage from 1% to 100%"},
		"of a rollout": {func(s *tidekeeperv1.ScheduledRestartSpec) {
			s.Method, s.MaxUnavailable = "Rollout", new(intstr.FromInt32(1))
		}, "maxUnavailable is only for method: Evict; the workload has its own for a rollout"},
		"of the default method": {func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method, s.MaxUnavailable = "", new(intstr.FromInt32(1)) }, "maxUnavailable is only for method: Evict; the workload has its own for a rollout"},
	} {
		r := evictionOf("Deployment", "wrong")
		tt.change(&r.Spec)
		if err := cluster.Create(t.Context(), r, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestPolicyAsksForTheRightToEvict checks that users who may patch a workload but not evict pods
// cannot have the workload's pods evicted, and cannot change a ScheduledRestart that evicts them.
func TestPolicyAsksForTheRightToEvict(t *testing.T) {
	frank := user(t, "frank", bindRole("frank", "tidekeeper-scheduledrestart-edit"), allow("frank", rule("apps", "deployments", "patch")))
	grace := user(t, "grace", bindRole("grace", "tidekeeper-scheduledrestart-edit"),
		allow("grace", rule("apps", "deployments", "patch"), rule("", "pods/eviction", "create")))
	evicting := func(name string) *tidekeeperv1.ScheduledRestart {
		r := restartFor("Deployment", name, "web")
		r.Spec.Method = tidekeeperv1.MethodEvict
		return r
	}
	framework.Eventually(t, "both have their rights", func() error {
		return errors.Join(frank.Create(t.Context(), restartFor("Deployment", "policy-frank", "web"), client.DryRunAll),
			grace.Create(t.Context(), evicting("policy-grace"), client.DryRunAll))
	})
	o := evicting("policy-evicts")
	if err := grace.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Delete(t, o) })
	rollout := restartFor("Deployment", "policy-rollout", "web")
	cluster.Apply(t, rollout)
	patch := func(o client.Object, text string) error {
		return frank.Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	for name, err := range map[string]error{
		"create one":        frank.Create(t.Context(), evicting("policy-frank")),
		"make one evict":    patch(rollout, `{"spec":{"method":"Evict"}}`),
		"request one":       patch(o, `{"metadata":{"annotations":{"tidekeeper.dev/restart-now":"2026-01-01T00:00:00Z"}}}`),
		"edit one":          patch(o, `{"spec":{"maxUnavailable":"100%"}}`),
		"make it a rollout": patch(o, `{"spec":{"method":"Rollout"}}`),
		"delete one":        frank.Delete(t.Context(), o.DeepCopy()),
	} {
		want := "frank may not create pods/eviction in the namespace default, and so may not decide when pods are evicted"
		if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("to %s: got %v, want %q", name, err, want)
		}
	}
	if err := patch(rollout, `{"spec":{"schedule":"0 4 * * *"}}`); err != nil {
		t.Errorf("to edit one that evicts nothing: %v", err)
	}
	// The right to evict pods does not include the right to restart the workload.
	heidi := user(t, "heidi", bindRole("heidi", "tidekeeper-scheduledrestart-edit"), allow("heidi", rule("", "pods/eviction", "create")))
	framework.Eventually(t, "heidi is refused for the workload", func() error {
		err := heidi.Create(t.Context(), evicting("policy-heidi"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "heidi may not patch deployments.apps web") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}
