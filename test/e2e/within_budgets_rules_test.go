// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestWithinBudgetsTolerations checks that a pod that tolerates the taint stays, a pod that does so
// for some seconds is evicted as long after its node was closed, also by a manager that was
// restarted, and the pods of DaemonSets go last and do not come back.
func TestWithinBudgetsTolerations(t *testing.T) {
	manager := cluster.StartManager(t, quickly...)
	const seconds = 6
	exists := corev1.Toleration{Key: "example.com/tolerant", Operator: corev1.TolerationOpExists}
	forAWhile := exists
	forAWhile.Effect, forAWhile.TolerationSeconds = corev1.TaintEffectNoExecute, new(int64(seconds))
	g := newGentle(t, "tolerant", 1, 2, 0, forAWhile)
	node := g.nodes[0]
	add := func(name string, tolerations ...corev1.Toleration) {
		spec := *app.DeepCopy()
		spec.Tolerations, spec.NodeSelector = tolerations, map[string]string{corev1.LabelHostname: node}
		o := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
		labels := map[string]string{"app": name}
		o.Spec = appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}
		cluster.Apply(t, o)
		rolledOut(t, "DaemonSet", name)
	}
	add("tolerant-log")
	add("tolerant-net", corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	add("tolerant-all", exists)
	log := podNames(t, "tolerant-log").UnsortedList()[0]
	audit := cluster.Audit(t, "tidekeeper/")
	events := watchNodesAndPods(t, "tolerant")
	cluster.Apply(t, g.pool)
	framework.Eventually(t, "the node is closed", func() error { return diff([]string{g.taint("NoSchedule")}, shapeOf(t, node).Taints) })
	closed := closedAt(t, g, node)
	manager.Kill(t)
	cluster.StartManager(t, quickly...)
	g.done(t)
	left := sets.New[string]()
	for _, event := range events() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || pod.DeletionTimestamp == nil || pod.Spec.NodeName != node {
			continue
		}
		left.Insert(pod.Name)
		asked := pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		if asked.Before(closed.Add(seconds * time.Second)) {
			t.Errorf("pod %s had to leave at %s; its node was closed at %s, and it tolerates the taint for %d s", pod.Name, asked, closed, seconds)
		}
	}
	if len(left) != 2 {
		t.Errorf("the pods %v had to leave; want two", left)
	}
	var evicted []string
	for _, r := range audit.Requests(t) {
		if r.Subresource == "eviction" && r.Code < 300 && (left.Has(r.Name) || r.Name == log) {
			evicted = append(evicted, r.Name)
		}
	}
	if len(evicted) != 3 || evicted[2] != log {
		t.Errorf("evicted were %v; want the pods %v and at last %s", evicted, sets.List(left), log)
	}
	framework.Eventually(t, "only the pod that tolerates the taint is left", func() error {
		list := &corev1.PodList{}
		if err := cluster.List(t.Context(), list, client.MatchingFields{"spec.nodeName": node}); err != nil {
			return err
		}
		var apps []string
		for _, pod := range list.Items {
			apps = append(apps, pod.Labels["app"])
		}
		return diff([]string{"tolerant-all"}, apps)
	})
}

// closedAt returns the time at which the pool closed a node, according to the node's record.
func closedAt(t *testing.T, g *gentle, name string) time.Time {
	t.Helper()
	node := framework.Node(name)
	cluster.Refresh(t, node)
	record := map[string]struct{ Closed map[string]time.Time }{}
	if err := json.Unmarshal([]byte(node.Annotations[tidekeeperv1.OwnershipAnnotation]), &record); err != nil {
		t.Fatal(err)
	}
	return record[g.pool.Name].Closed[g.pool.Spec.Taints[0].Key]
}

// TestWithinBudgetsAndFreeze checks that no pod is evicted from a closed node while a freeze is in
// force, although its budget allows it, and that the node goes on when the freeze is lifted.
func TestWithinBudgetsAndFreeze(t *testing.T) {
	manager := cluster.StartManager(t, quickly...)
	g := newGentle(t, "icy", 2, 2, 2)
	before := podNames(t, "icy")
	cluster.Apply(t, g.pool)
	g.blocked(t, 2)
	f := freeze("icy")
	cluster.Apply(t, f)
	eventuallyFreezeIs(t, f, "InForce")
	p := eventuallyPool(t, "icy", "is held back", func(p *tidekeeperv1.NodePool) error { return diff(int32(2), p.Status.HeldBackNodes) })
	if ready := meta.FindStatusCondition(p.Status.Conditions, "Ready"); !strings.Contains(ready.Message, "2 of them are being emptied within budgets, held back by Freeze icy until") {
		t.Errorf("the condition Ready says %q", ready.Message)
	}
	audit := cluster.Audit(t, "tidekeeper/")
	g.allow(t, 1)
	g.budgetIsObserved(t, 2)
	// A new manager does not wait before it tries an eviction again.
	manager.Kill(t)
	manager = cluster.StartManager(t, quickly...)
	framework.Eventually(t, "the manager has looked at both nodes", func() error {
		if looked := manager.ReadMetrics(t).SumOf("controller_runtime_reconcile_total", "controller", "nodepool-emptying"); looked < 2 {
			return fmt.Errorf("%v times", looked)
		}
		return nil
	})
	evictedOnce(t, audit.Requests(t), nil)
	if d := diff(before, podNames(t, "icy")); d != nil {
		t.Errorf("pods were replaced during the freeze: %v", d)
	}
	cluster.Delete(t, f)
	g.done(t)
	evictedOnce(t, audit.Requests(t), before)
}

// TestWithinBudgetsCancelled checks that a pool that no longer asks for the taint, or is deleted,
// opens a node that is being emptied, and evicts no more pods from it.
func TestWithinBudgetsCancelled(t *testing.T) {
	cluster.StartManager(t, quickly...)
	g := newGentle(t, "fickle", 2, 2, 2)
	before := podNames(t, "fickle")
	cluster.Apply(t, g.pool)
	g.blocked(t, 2)

	cluster.Change(t, g.pool, func() { g.pool.Spec.Taints = nil })
	for _, node := range g.nodes {
		eventuallyShape(t, node, clean)
	}
	healthyWith(t, "fickle", 2)

	g.pool.Spec.Taints = []tidekeeperv1.Taint{{
		Key: "example.com/fickle", Value: "yes", Effect: corev1.TaintEffectNoExecute, Eviction: tidekeeperv1.TaintEvictionWithinBudgets,
	}}
	cluster.MustKubectl(t, "", "patch", "nodepool", "fickle", "--type=merge", "--patch",
		`{"spec":{"taints":[{"key":"example.com/fickle","value":"yes","effect":"NoExecute","eviction":"WithinBudgets"}]}}`)
	g.blocked(t, 2)
	cluster.Delete(t, g.pool)
	eventuallyGone(t, framework.Pool("fickle"))
	for _, node := range g.nodes {
		eventuallyShape(t, node, clean)
	}
	if d := diff(before, podNames(t, "fickle")); d != nil {
		t.Errorf("pods were evicted: %v", d)
	}
}

// TestWithinBudgetsOrNot checks that a taint can be made Immediate while a node is being emptied for
// it, and that a closing taint that another client removes is put back.
func TestWithinBudgetsOrNot(t *testing.T) {
	cluster.StartManager(t, quickly...)
	g := newGentle(t, "hasty", 1, 1, 1)
	cluster.Apply(t, g.pool)
	g.blocked(t, 1)
	cluster.MustKubectl(t, "", "taint", "nodes", g.nodes[0], g.pool.Spec.Taints[0].Key+":NoSchedule-")
	framework.Eventually(t, "the node is closed again", func() error { return diff([]string{g.taint("NoSchedule")}, shapeOf(t, g.nodes[0]).Taints) })
	cluster.EventuallyEvent(t, "NodePool", "hasty", "Warning DriftCorrected: restored settings that other clients had changed: taint example.com/hasty:NoSchedule on node hasty-1")
	cluster.Change(t, g.pool, func() { g.pool.Spec.Taints[0].Eviction = tidekeeperv1.TaintEvictionImmediate })
	g.done(t)
}

// TestWithinBudgetsIsValidated checks that the field eviction is refused for a taint that evicts no
// pods.
func TestWithinBudgetsIsValidated(t *testing.T) {
	p := framework.Pool("wrong")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/wrong", Effect: corev1.TaintEffectNoSchedule, Eviction: tidekeeperv1.TaintEvictionImmediate}}
	const want = "eviction is for taints with the effect NoExecute"
	if err := cluster.Create(t.Context(), p, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	p.Spec.Taints[0].Effect, p.Spec.Taints[0].Eviction = corev1.TaintEffectNoExecute, "Gently"
	if err := cluster.Create(t.Context(), p, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `supported values: "Immediate", "WithinBudgets"`) {
		t.Error(errors.Join(errors.New("an unknown eviction is not refused"), err))
	}
}
