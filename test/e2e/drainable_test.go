// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// drainable is a pool that asks whether its two nodes can be drained, with a Deployment of two pods
// and a PodDisruptionBudget that allows no disruption.
type drainable struct {
	pool    *tidekeeperv1.NodePool
	budget  *policyv1.PodDisruptionBudget
	spec    corev1.PodSpec
	manager *framework.Manager
}

// startDrainable creates the objects. The pool asks only once the manager has seen both pods: the
// condition would keep a message about the first of them for a minute of the manager's clock.
func startDrainable(t *testing.T, name string, manager *framework.Manager) *drainable {
	t.Helper()
	addMembers(t, name, 2)
	d := &drainable{
		pool:    framework.Pool(name),
		manager: manager,
		spec: corev1.PodSpec{
			NodeSelector: map[string]string{role(name): ""}, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
		},
		budget: &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		},
	}
	workload := framework.Deployment(name, 2, d.spec)
	cluster.Apply(t, workload)
	cluster.Apply(t, d.budget)
	cluster.Apply(t, d.pool)
	rolledOut(t, "Deployment", name)
	framework.Eventually(t, "the budget counts both pods", func() error {
		cluster.Refresh(t, d.budget)
		return diff([]any{d.budget.Generation, int32(2)}, []any{d.budget.Status.ObservedGeneration, d.budget.Status.CurrentHealthy})
	})
	eventuallyPool(t, name, "counts both pods", func(p *tidekeeperv1.NodePool) error {
		return diff(int64(2), p.Status.Requested.Pods().Value())
	})
	cluster.Change(t, d.pool, func() { d.pool.Spec.Drainable = &tidekeeperv1.Drainable{} })
	return d
}

// allow changes the budget, and waits until kube-controller-manager has seen it.
func (d *drainable) allow(t *testing.T, minAvailable int32) {
	t.Helper()
	cluster.Change(t, d.budget, func() { d.budget.Spec.MinAvailable = new(intstr.FromInt32(minAvailable)) })
	framework.Eventually(t, "the budget is computed", func() error {
		cluster.Refresh(t, d.budget)
		return errors.Join(diff(d.budget.Generation, d.budget.Status.ObservedGeneration), diff(2-minAvailable, d.budget.Status.DisruptionsAllowed))
	})
}

// becomes waits until the condition Drainable has the given reason for the current spec, and returns
// its message.
func (d *drainable) becomes(t *testing.T, reason string) string {
	t.Helper()
	status := map[string]metav1.ConditionStatus{"PodsLeave": metav1.ConditionTrue, "PodsStay": metav1.ConditionFalse}
	var c *metav1.Condition
	// An evaluation is made every five seconds.
	framework.EventuallyWithin(t, 2*framework.Patience, d.pool.Name+" is "+reason, func() error {
		cluster.Refresh(t, d.pool)
		if c = meta.FindStatusCondition(d.pool.Status.Conditions, "Drainable"); c == nil {
			return errors.New("it has no condition")
		}
		return errors.Join(diff([]any{reason, d.pool.Generation}, []any{c.Reason, c.ObservedGeneration}), is(d.pool, "Healthy"))
	})
	if want := cmp.Or(status[reason], metav1.ConditionUnknown); c.Status != want {
		t.Errorf("%s: its status is %s, want %s", reason, c.Status, want)
	}
	return c.Message
}

// counts waits until the metrics count the given number of blocked nodes, and of pods with the given
// reason.
func (d *drainable) counts(t *testing.T, nodes int, reason string, pods int) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, fmt.Sprintf("%d pods of %d nodes of %s are blocked by %s", pods, nodes, d.pool.Name, reason), func() error {
		m := d.manager.ReadMetrics(t)
		return errors.Join(
			gauge(m, float64(nodes), "tidekeeper_nodepool_drain_blocked_nodes", map[string]string{"pool": d.pool.Name}),
			gauge(m, float64(pods), "tidekeeper_nodepool_drain_blockers", map[string]string{"pool": d.pool.Name, "reason": reason}))
	})
}

// aheadClock returns a clock that runs ten minutes ahead, so that a budget that refuses counts as
// lasting at once.
func aheadClock(t *testing.T) framework.Clock {
	t.Helper()
	clock := framework.NewStandingClock(t, time.Now()).Going()
	clock.Set(t, time.Now().Add(10*time.Minute))
	return clock
}

// forward moves a clock by the minimum time between two changes of the condition.
func forward(t *testing.T, clock framework.Clock) {
	t.Helper()
	clock.Set(t, clock.Now(t).Add(time.Minute))
}

// TestNodePool_Drainable checks that the condition Drainable and the metrics name the pods that
// would not leave their nodes, and since when, without an effect on the pool's condition Ready.
func TestNodePool_Drainable(t *testing.T) {
	clock := aheadClock(t)
	manager := cluster.WithClocks(t).StartManager(t, clock.Flag())
	d := startDrainable(t, "drainable", manager)
	said := d.becomes(t, "PodsStay")
	cluster.Refresh(t, d.budget)
	since := d.budget.Status.Conditions[0].LastTransitionTime.UTC().Format(time.RFC3339)
	for _, text := range []string{
		"of 2 nodes ", "2 pods of Deployment/drainable in the namespace default on node drainable-",
		"the PodDisruptionBudget drainable has allowed no disruption since " + since, "see kubectl tide pools blockers drainable",
	} {
		if !strings.Contains(said, text) {
			t.Errorf("%q does not contain %q", said, text)
		}
	}

	d.allow(t, 1)
	d.counts(t, 0, "Budget", 0)
	forward(t, clock)
	d.becomes(t, "PodsLeave")

	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: metav1.NamespaceDefault}, Spec: d.spec}
	cluster.Apply(t, bare)
	d.counts(t, 1, "NoController", 1)
	forward(t, clock)
	if said := d.becomes(t, "PodsStay"); !strings.Contains(said, "1 of 2 nodes has ") || !strings.Contains(said, "1 pod without a controller in the namespace default on node drainable-") {
		t.Errorf("of a bare pod it says %q", said)
	}

	// Edits are answered at once.
	cluster.Change(t, d.pool, func() {
		d.pool.Spec.Drainable.Ignore = []tidekeeperv1.DrainBlocker{tidekeeperv1.DrainBlockerNoController}
	})
	d.becomes(t, "PodsLeave")
	cluster.Change(t, d.pool, func() { d.pool.Spec.Drainable = nil })
	eventuallyPool(t, "drainable", "has no condition Drainable", func(p *tidekeeperv1.NodePool) error {
		if c := meta.FindStatusCondition(p.Status.Conditions, "Drainable"); c != nil {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	framework.EventuallyWithin(t, 2*framework.Patience, "the metrics are gone", func() error {
		if _, has := manager.ReadMetrics(t).Value("tidekeeper_nodepool_drain_blocked_nodes", map[string]string{"pool": "drainable"}); has {
			return errors.New("they are there")
		}
		return nil
	})
	manager.AssertSound(t)
}

// TestNodePool_DrainableCostsNoRequests checks that budgets which change all the time cost no
// requests within a minute after a change of the condition, and one write afterwards.
func TestNodePool_DrainableCostsNoRequests(t *testing.T) {
	clock := aheadClock(t)
	manager := cluster.WithClocks(t).StartManager(t, clock.Flag())
	d := startDrainable(t, "drain-rest", manager)
	d.becomes(t, "PodsStay")
	d.allow(t, 1)
	// From here on the clock stands, so that the test does not depend on the time that it takes.
	at := clock.Now(t).Add(time.Minute)
	clock = clock.Standing()
	clock.Set(t, at)
	d.becomes(t, "PodsLeave")
	manager.AssertIdle(t)
	audit := cluster.Audit(t, "tidekeeper/")
	requests := func() (all []string) {
		for _, r := range audit.Requests(t) {
			if r.Verb != "watch" {
				all = append(all, r.String())
			}
		}
		return all
	}
	for i := range 3 {
		clock.Set(t, at.Add(time.Duration(2*i+1)*5*time.Second)) // longer than the least time between any two writes of a status
		d.allow(t, 2)
		d.counts(t, 2, "Budget", 2)
		clock.Set(t, at.Add(time.Duration(2*i+2)*5*time.Second))
		d.allow(t, 1)
		d.counts(t, 0, "Budget", 0)
	}
	d.allow(t, 2)
	d.counts(t, 2, "Budget", 2)
	manager.AssertIdle(t)
	if got := requests(); len(got) > 0 {
		t.Errorf("while the budget changed, the manager sent %q", got)
	}
	clock.Set(t, at.Add(time.Minute))
	d.becomes(t, "PodsStay")
	manager.AssertIdle(t)
	if err := diff([]string{"patch nodepools/status drain-rest: 200"}, requests()); err != nil {
		t.Errorf("a minute later, the requests %v", err)
	}
}

// TestLostEvents_Budget changes a budget without an event to the manager, and checks that the
// condition becomes correct once the manager lists the budgets again.
func TestLostEvents_Budget(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	clock := aheadClock(t)
	manager := cluster.WithClocks(t).StartManager(t, "--kubeconfig", proxy.Kubeconfig, clock.Flag())
	d := startDrainable(t, "drain-lost", manager)
	d.becomes(t, "PodsStay")
	proxy.Add(t, "rules: [{name: lost, match: {resources: [poddisruptionbudgets.policy]}, events: {types: [MODIFIED]}, fault: {kind: DropEvent}}]")
	d.allow(t, 1)
	proxy.AwaitFired(t, "lost", 1)
	forward(t, clock)
	proxy.Add(t, `rules: [{name: expired, match: {verbs: [watch], resources: [poddisruptionbudgets.policy]}, count: {times: 1}, fault: {kind: Error, code: 410, reason: Expired}}]`)
	proxy.Remove(t, "lost")
	proxy.Cut(t, "match: {resources: [poddisruptionbudgets.policy]}")
	proxy.AwaitFired(t, "expired", 1)
	d.becomes(t, "PodsLeave")
	manager.AssertSound(t)
}

// TestNodePool_DrainableAndAHostileTenant checks that a tenant with many budgets and labels delays
// the condition of no other pool, fills no memory, and is not said to leave.
func TestNodePool_DrainableAndAHostileTenant(t *testing.T) {
	clock := aheadClock(t)
	manager := cluster.WithClocks(t).StartManager(t, clock.Flag())
	neighbour := startDrainable(t, "drain-neighbour", manager)
	neighbour.becomes(t, "PodsStay")
	memory := manager.ReadMetrics(t).Sum("process_resident_memory_bytes")

	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "drain-hostile"}})
	addMembers(t, "drain-hostile", 1)
	values := make([]string, 2000)
	for i := range values {
		values[i] = fmt.Sprintf("%060d", i)
	}
	for i := range 600 {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i), Namespace: "drain-hostile"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{}},
		}
		if i%3 > 0 { // no pod has this label; the values exceed the bounds of a selector
			budget.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "id", Operator: metav1.LabelSelectorOpIn, Values: values[:i%3*1000]}}
		}
		cluster.Apply(t, budget)
	}
	many := map[string]string{}
	for i := range 4000 {
		many[fmt.Sprintf("example.com/label-%d", i)] = values[i%len(values)]
	}
	for name, labels := range map[string]map[string]string{"plain": nil, "many": many} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "drain-hostile", Labels: labels}, Spec: neighbour.spec}
		pod.Spec.NodeSelector = map[string]string{role("drain-hostile"): ""}
		cluster.Apply(t, pod)
	}
	hostile := &drainable{pool: framework.Pool("drain-hostile"), manager: manager}
	hostile.pool.Spec.Drainable = &tidekeeperv1.Drainable{Ignore: []tidekeeperv1.DrainBlocker{"NoController"}}
	cluster.Apply(t, hostile.pool)
	hostile.counts(t, 1, "SeveralBudgets", 1)
	hostile.counts(t, 1, "NotEvaluated", 1)
	forward(t, clock)
	if said := hostile.becomes(t, "PodsStay"); len(said) > 1000 {
		t.Errorf("the condition has %d bytes", len(said))
	}
	cluster.Change(t, hostile.pool, func() {
		hostile.pool.Spec.Drainable.Ignore = append(hostile.pool.Spec.Drainable.Ignore, "SeveralBudgets")
	})
	hostile.becomes(t, "PartlyEvaluated")

	neighbour.allow(t, 1)
	forward(t, clock)
	neighbour.becomes(t, "PodsLeave")
	if after := manager.ReadMetrics(t).Sum("process_resident_memory_bytes"); after > memory+100<<20 {
		t.Errorf("the manager had %.0f MiB and has %.0f", memory/(1<<20), after/(1<<20))
	}
	manager.AssertSound(t)
}
