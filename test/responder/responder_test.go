// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responder tests the controller eviction-responder on an API server that serves the alpha API
// lifecycle.k8s.io. Its controller does not exist yet, so the tests take its place.
//
//	responder_test.go  the responses to Evictions
//	steer_test.go      what Kubernetes' controller does with Evictions
package responder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// responding turns the controller on.
const responding = "--controllers=*,eviction-responder"

var cluster framework.Cluster

func TestMain(m *testing.M) {
	framework.VerifyDecoding()
	os.Exit(framework.Main(granted{m}, &cluster, "--nodes=2", "--audit", "--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true"))
}

// granted is a test run in which the manager has the rights of the controller, and may be denied nothing.
type granted struct{ tests *testing.M }

// Run runs the tests.
func (g granted) Run() int {
	err := grant(&cluster)
	if err == nil {
		if code := g.tests.Run(); code != 0 {
			return code
		}
		err = noneDenied()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// grant binds the role of the controller, which is off by default.
func grant(c *framework.Cluster) error {
	_, err := c.Kubectl("", "apply", "-k", filepath.Join(framework.Root(), "config", "rbac", "eviction_responder"))
	return err
}

// noneDenied returns an error that names a request for which a manager lacks a right.
func noneDenied() error {
	requests, err := cluster.ManagerRequests()
	if err != nil {
		return err
	}
	for _, r := range requests {
		if r.Denied {
			return fmt.Errorf("the manager was denied: %s, group %q", r, r.Group)
		}
	}
	return nil
}

// deployment creates a Deployment whose pods name the manager as their responder, and waits until all
// pods are ready.
func deployment(t *testing.T, name string, replicas int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	d := framework.Deployment(name, replicas, framework.App)
	d.Spec.Template.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: tidekeeperv1.EvictionResponder, Priority: new(int32(10000))}}
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/ready-after": "1s"}
	change(d)
	cluster.Apply(t, d)
	framework.Eventually(t, "Deployment "+name+" is ready", func() error {
		cluster.OpenGate(t, d.Namespace, name)
		cluster.Refresh(t, d)
		if d.Status.ReadyReplicas != replicas || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
	return d
}

func unchanged(*appsv1.Deployment) {}

// gated adds a readiness gate to the pods, which holds up a rollout until the test opens it.
func gated(d *appsv1.Deployment) {
	d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: framework.Gate}}
}

// podsOf returns the pods of a Deployment by name.
func podsOf(t *testing.T, d *appsv1.Deployment) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// restartIs waits until the ScheduledRestart that moves the pods of a Deployment passes a check, which
// gets nil if there is none.
func restartIs(t *testing.T, d *appsv1.Deployment, what string, check func(*tidekeeperv1.ScheduledRestart) bool) {
	t.Helper()
	framework.Eventually(t, "the restart of "+d.Name+" "+what, func() error {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.HasLabels{tidekeeperv1.EvictionResponderLabel}); err != nil {
			return err
		}
		var of *tidekeeperv1.ScheduledRestart
		for i := range list.Items {
			if list.Items[i].Spec.TargetRef.Name == d.Name {
				of = &list.Items[i]
			}
		}
		if !check(of) {
			return fmt.Errorf("it is %+v", of)
		}
		return nil
	})
}

func isGone(r *tidekeeperv1.ScheduledRestart) bool { return r == nil }

// wasRestarted checks how often a Deployment has been restarted.
func wasRestarted(t *testing.T, d *appsv1.Deployment, want int) {
	t.Helper()
	if got := cluster.RestartedAt(t, d); len(got) != want {
		t.Errorf("Deployment %s was restarted at %q, want %d restarts", d.Name, got, want)
	}
}

// TestSingleReplicaIsRolled checks that the only pod of a Deployment is moved by one restart, during
// which a pod is ready at all times, and that nothing is left behind.
func TestSingleReplicaIsRolled(t *testing.T) {
	manager := cluster.StartManager(t, responding)
	d := deployment(t, "single", 1, unchanged)
	ready := cluster.WatchReady(t, map[string]int{d.Name: 1})
	e := evict(t, &podsOf(t, d)[0])
	e.completed(t, "the pod is gone")
	e.finish(t)
	restartIs(t, d, "is deleted", isGone)
	for _, problem := range ready() {
		t.Error(problem)
	}
	wasRestarted(t, d, 1)
	manager.AssertIdle(t)
	manager.AssertSound(t)
	if n := manager.ReadMetrics(t).SumOf("tidekeeper_eviction_responses_total", "outcome", "Gone"); n != 1 {
		t.Errorf("%g responses are counted", n)
	}
}

// TestAllReplicasAreRolledOnce checks that one restart moves both pods of a Deployment, and that a
// budget that allows no disruption is respected.
func TestAllReplicasAreRolledOnce(t *testing.T) {
	cluster.StartManager(t, responding)
	both, strict := deployment(t, "both", 2, unchanged), deployment(t, "strict", 2, unchanged)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: strict.Namespace, Name: strict.Name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2)), Selector: strict.Spec.Selector},
	}
	cluster.Apply(t, budget)
	framework.Eventually(t, "the budget is counted", func() error {
		cluster.Refresh(t, budget)
		if budget.Status.ExpectedPods != 2 || budget.Status.DesiredHealthy != 2 {
			return fmt.Errorf("%+v", budget.Status)
		}
		return nil
	})
	ready := cluster.WatchReady(t, map[string]int{strict.Name: 2})
	pods := podsOf(t, both)
	evictions := []*eviction{create(t, &pods[0]), create(t, &pods[1]), create(t, &podsOf(t, strict)[0])}
	for _, e := range evictions {
		e.begin(t)
	}
	for _, e := range evictions {
		e.completed(t, "the pod is gone")
		e.finish(t)
	}
	for _, d := range []*appsv1.Deployment{both, strict} {
		restartIs(t, d, "is deleted", isGone)
		wasRestarted(t, d, 1)
	}
	for _, problem := range ready() {
		t.Error(problem)
	}
}

// TestManagerIsKilled checks that a manager that takes over during a restart ends the response, and
// restarts nothing twice.
func TestManagerIsKilled(t *testing.T) {
	lease := cluster.ElectUntilReleased(t)
	start := func() *framework.Manager { return cluster.StartManager(t, append([]string{responding}, lease...)...) }
	manager := start()
	d := deployment(t, "killed", 1, gated)
	cluster.Refresh(t, d)
	before := d.Generation
	ready := cluster.WatchReady(t, map[string]int{d.Name: 1})
	e := evict(t, &podsOf(t, d)[0])
	restartIs(t, d, "is requested", func(r *tidekeeperv1.ScheduledRestart) bool { return r != nil })
	for _, phase := range []string{"after the request", "during the restart"} {
		manager.Kill(t)
		cluster.ExpireLease(t)
		manager = start()
		restartIs(t, d, "is in progress "+phase, func(r *tidekeeperv1.ScheduledRestart) bool { return r != nil && r.Status.Active != nil })
		// A leader that is killed before it patches the Deployment leaves the patch to the next leader.
		framework.Eventually(t, "the rollout has begun "+phase, func() error {
			if cluster.Refresh(t, d); d.Generation == before {
				return fmt.Errorf("the Deployment has the generation %d, as before", before)
			}
			return nil
		})
	}
	manager.Kill(t)
	framework.Eventually(t, "the pod has moved", func() error {
		cluster.OpenGate(t, d.Namespace, d.Name)
		return e.podIsGone(t)
	})
	cluster.ExpireLease(t)
	start()
	e.completed(t, "the pod is gone")
	e.finish(t)
	restartIs(t, d, "is deleted", isGone)
	for _, problem := range ready() {
		t.Error(problem)
	}
	wasRestarted(t, d, 1)
}

// TestDeclined checks that pods that a restart cannot move better than an eviction are left to the next
// responder at once, and why.
func TestDeclined(t *testing.T) {
	manager := cluster.StartManager(t, responding)
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "bare"}, Spec: *framework.App.DeepCopy()}
	bare.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: tidekeeperv1.EvictionResponder, Priority: new(int32(10000))}}
	cluster.Apply(t, bare)
	several := deployment(t, "several", 2, unchanged)
	recreated := deployment(t, "recreated", 1, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
	paused := deployment(t, "paused", 1, unchanged)
	cluster.Change(t, paused, func() { paused.Spec.Paused = true })
	noSurge := deployment(t, "no-surge", 1, func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: new(intstr.FromInt32(1))}
	})
	for _, tc := range []struct {
		pod *corev1.Pod
		why string
	}{
		{bare, "belongs to no Deployment"},
		{&podsOf(t, several)[0], "other pods of it stay ready"},
		{&podsOf(t, recreated)[0], "does not replace its pods one after the other"},
		{&podsOf(t, paused)[0], "it is paused"},
		{&podsOf(t, noSurge)[0], "would leave no pod ready"},
	} {
		e := evict(t, tc.pod)
		e.completed(t, tc.why)
		e.handOver(t)
		framework.Eventually(t, "pod "+tc.pod.Name+" is evicted by the next responder", func() error { return e.podIsGone(t) })
	}
	manager.AssertIdle(t)
	for _, d := range []*appsv1.Deployment{several, recreated, paused, noSurge} {
		restartIs(t, d, "was not requested", isGone)
		wasRestarted(t, d, 0)
	}
	if n := manager.ReadMetrics(t).SumOf("tidekeeper_eviction_responses_total", "outcome", "Declined"); n != 5 {
		t.Errorf("%g responses are counted, want 5", n)
	}
}

// TestFreezeHoldsRestart checks that heartbeats come while a Freeze holds the restart back, with what it
// waits for; that a canceled Eviction withdraws its restart; and that the restart of the other
// Eviction goes on after the Freeze.
func TestFreezeHoldsRestart(t *testing.T) {
	cluster.StartManager(t, responding)
	freeze := &tidekeeperv1.Freeze{
		ObjectMeta: metav1.ObjectMeta{Name: "closed"},
		Spec:       tidekeeperv1.FreezeSpec{Until: metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)), Reason: "the books are closed"},
	}
	cluster.Apply(t, freeze)
	held, canceled := deployment(t, "held", 1, unchanged), deployment(t, "canceled", 1, unchanged)
	audit := cluster.Audit(t, "tidekeeper/")
	e, other := evict(t, &podsOf(t, held)[0]), evict(t, &podsOf(t, canceled)[0])
	e.says(t, "the books are closed")
	other.says(t, "the books are closed")
	first := e.entry(t).HeartbeatTime
	other.cancel(t)
	restartIs(t, canceled, "is withdrawn", isGone)

	framework.EventuallyWithin(t, 2*framework.Patience, "the next heartbeat", func() error {
		if next := e.entry(t).HeartbeatTime; next.Sub(first.Time) < 20*time.Second {
			return fmt.Errorf("the first is of %s, the last of %s", first, next)
		}
		return nil
	})
	writes := 0
	for _, r := range audit.Requests(t) {
		if r.Writes() && r.Resource == "evictions" && r.Name == e.Name {
			writes++
		}
	}
	// The responder reports that it begins, twice at most what it waits for, and a heartbeat each minute.
	if most := 4 + int(time.Since(first.Time)/time.Minute); writes > most {
		t.Errorf("the manager has written %d times since %s, want at most %d writes", writes, first, most)
	}
	cluster.Delete(t, freeze)
	e.completed(t, "the pod is gone")
	e.finish(t)
	restartIs(t, held, "is deleted", isGone)
	wasRestarted(t, held, 1)
	wasRestarted(t, canceled, 0)
	if entry := other.entry(t); entry.CompletionTime != nil {
		t.Errorf("the canceled response was completed: %+v", entry)
	}
}

// TestOtherResponders checks that the manager leaves an Eviction alone while another responder is active.
func TestOtherResponders(t *testing.T) {
	manager := cluster.StartManager(t, responding)
	d := deployment(t, "other", 1, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.EvictionResponders = []corev1.EvictionResponder{
			{Name: "example.com/first", Priority: new(int32(20000))}, {Name: tidekeeperv1.EvictionResponder, Priority: new(int32(10000))},
		}
	})
	e := evict(t, &podsOf(t, d)[0])
	manager.AssertIdle(t)
	if entry := e.entry(t); entry.HeartbeatTime != nil || entry.CompletionTime != nil {
		t.Errorf("an inactive responder has written %+v", entry)
	}
	e.report(t, "example.com/first")
	e.handOver(t)
	e.completed(t, "the pod is gone")
	wasRestarted(t, d, 1)
}

// TestNotServed checks that a manager is ready and idle on a cluster that does not serve Evictions, and
// says so once.
func TestNotServed(t *testing.T) {
	without := framework.Start(t, "--nodes=0")
	if err := grant(without); err != nil {
		t.Fatal(err)
	}
	if err := without.List(t.Context(), &lifecyclev1alpha1.EvictionList{}); err == nil {
		t.Fatal("this cluster serves Evictions")
	}
	manager := without.StartManager(t, responding)
	const idle = "The cluster does not serve Evictions"
	framework.Eventually(t, "the manager says that it is idle", func() error {
		if n := strings.Count(manager.Log(), idle); n != 1 {
			return fmt.Errorf("it says so %d times", n)
		}
		return nil
	})
	manager.AssertIdle(t)
	manager.AssertSound(t)
}
