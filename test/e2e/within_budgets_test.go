// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// quickly are the flags of a manager that empties all nodes of a pool at once, each for at least a
// second.
var quickly = []string{"--no-execute-share=100", "--no-execute-interval=1s"}

// gentle is a pool that gets a NoExecute taint with the eviction WithinBudgets, with a Deployment
// whose pods run on its nodes and may move to other nodes.
type gentle struct {
	pool   *tidekeeperv1.NodePool
	nodes  []string
	d      *appsv1.Deployment
	budget *policyv1.PodDisruptionBudget
}

// closeAtOnce lets the pool close all of its nodes at once, so that pods move to a node whose turn is
// yet to come only while kube-scheduler does not know of its taint.
func (g *gentle) closeAtOnce() {
	g.pool.Spec.Taints = append(g.pool.Spec.Taints, tidekeeperv1.Taint{Key: g.pool.Spec.Taints[0].Key, Value: "yes", Effect: corev1.TaintEffectNoSchedule})
}

// newGentle adds nodes and a ready Deployment with a PodDisruptionBudget. The pods are spread over
// the nodes of the pool. Other nodes are added after them. The pool is not created yet.
func newGentle(t *testing.T, name string, nodes int, replicas, minAvailable int32, tolerations ...corev1.Toleration) *gentle {
	t.Helper()
	g := &gentle{pool: framework.Pool(name), nodes: addMembers(t, name, nodes, "--labels", "where="+name)}
	g.pool.Spec.Taints = []tidekeeperv1.Taint{{
		Key: "example.com/" + name, Value: "yes", Effect: corev1.TaintEffectNoExecute, Eviction: tidekeeperv1.TaintEvictionWithinBudgets,
	}}
	g.d = deployment(name, replicas, corev1.PodSpec{
		NodeSelector: map[string]string{"where": name}, Tolerations: tolerations,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		}},
		Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	cluster.Apply(t, g.d)
	eventuallyReady(t, g.d)
	g.budget = &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(minAvailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	cluster.Apply(t, g.budget)
	g.budgetIsObserved(t, replicas)
	cluster.AddNodes(t, name+"-spare", 2, "--labels", "where="+name)
	return g
}

func (g *gentle) budgetIsObserved(t *testing.T, healthy int32) {
	t.Helper()
	framework.Eventually(t, "the budget is in force", func() error {
		cluster.Refresh(t, g.budget)
		return diff([]any{g.budget.Generation, healthy}, []any{g.budget.Status.ObservedGeneration, g.budget.Status.CurrentHealthy})
	})
}

// allow lets the budget allow evictions.
func (g *gentle) allow(t *testing.T, minAvailable int32) {
	t.Helper()
	cluster.Change(t, g.budget, func() { g.budget.Spec.MinAvailable = new(intstr.FromInt32(minAvailable)) })
}

func (g *gentle) taint(effect string) string {
	return g.pool.Spec.Taints[0].Key + "=yes:" + effect
}

// done waits until the pool is healthy, and checks that each node has the taints of its spec alone.
func (g *gentle) done(t *testing.T) {
	t.Helper()
	healthyWith(t, g.pool.Name, int32(len(g.nodes)))
	for _, name := range g.nodes {
		node := framework.Node(name)
		cluster.Refresh(t, node)
		want := []string{g.taint("NoExecute")}
		if len(g.pool.Spec.Taints) > 1 {
			want = append(want, g.taint("NoSchedule"))
		}
		taints, record := shapeOfNode(node).Taints, node.Annotations[tidekeeperv1.OwnershipAnnotation]
		slices.Sort(taints)
		if d := diff(want, taints); d != nil || isClosed(node) || strings.Count(record, "example.com") != len(want) {
			t.Errorf("%s: taints %v; record %s", name, d, record)
		}
	}
}

// blocked waits until the pool is blocked on the given number of nodes.
func (g *gentle) blocked(t *testing.T, nodes int32) *tidekeeperv1.NodePool {
	t.Helper()
	return eventuallyPool(t, g.pool.Name, fmt.Sprintf("is blocked on %d nodes", nodes), func(p *tidekeeperv1.NodePool) error {
		if err := is(p, "EvictionBlocked"); err != nil {
			return err
		}
		return diff(nodes, p.Status.Emptying.BlockedNodes)
	})
}

// isClosed reports whether the record of a node says that it is being emptied.
func isClosed(node *corev1.Node) bool {
	return strings.Contains(node.Annotations[tidekeeperv1.OwnershipAnnotation], `"closed"`)
}

// checkHistory checks the events of the nodes and pods of a pool. At no time may fewer pods be
// available than the budget asks for, or a node have the NoExecute taint and a pod that does not
// tolerate it. At most the given number of nodes may be emptied at once, and a node must be closed
// before pods leave it.
func (g *gentle) checkHistory(t *testing.T, events []watch.Event, minAvailable, atOnce int) {
	t.Helper()
	nodes, pods, began := map[string]*corev1.Node{}, map[string]*corev1.Pod{}, false
	for _, event := range events {
		switch o := event.Object.(type) {
		case *corev1.Node:
			nodes[o.Name] = o
		case *corev1.Pod:
			if pods[o.Name] = o; event.Type == watch.Deleted {
				delete(pods, o.Name)
			}
		}
		available, left, closed := 0, sets.New[string](), sets.New[string]()
		for _, pod := range pods {
			ready := meta.IsStatusConditionTrue(conditionsOf(pod), string(corev1.PodReady))
			if ready && pod.DeletionTimestamp == nil {
				available++
			}
			// A kubelet reports that a pod has ended before it removes the pod.
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if node := nodes[pod.Spec.NodeName]; node != nil && !ended {
				left.Insert(node.Name)
				taints := shapeOfNode(node).Taints
				if len(taints) == 0 && pod.DeletionTimestamp != nil {
					t.Errorf("pod %s leaves node %s, which is open", pod.Name, node.Name)
				}
				if slices.Contains(taints, g.taint("NoExecute")) {
					t.Errorf("node %s has the taints %v, and pod %s", node.Name, taints, pod.Name)
				}
			}
		}
		for name := range left {
			if isClosed(nodes[name]) {
				closed.Insert(name)
			}
		}
		if began = began || available == int(*g.d.Spec.Replicas); began && available < minAvailable {
			t.Errorf("%d pods are available; want %d or more", available, minAvailable)
		}
		if len(closed) > atOnce {
			t.Errorf("the nodes %v are emptied at once; want %d or fewer", sets.List(closed), atOnce)
		}
	}
	if !began {
		t.Error("the pods were never available")
	}
}

func conditionsOf(pod *corev1.Pod) (conditions []metav1.Condition) {
	for _, c := range pod.Status.Conditions {
		conditions = append(conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status)})
	}
	return conditions
}

// evictedOnce checks that the pods that were on the pool's nodes, according to its events, were
// evicted exactly once each, and no other pod was. It returns the number of these pods.
func (g *gentle) evictedOnce(t *testing.T, requests []framework.Request, events []watch.Event) int {
	t.Helper()
	stood := sets.New[string]()
	for _, event := range events {
		if pod, ok := event.Object.(*corev1.Pod); ok && slices.Contains(g.nodes, pod.Spec.NodeName) {
			stood.Insert(pod.Name)
		}
	}
	evictedOnce(t, requests, stood)
	return len(stood)
}

// evictedOnce checks that the given pods were evicted exactly once each, and no other pod was.
func evictedOnce(t *testing.T, requests []framework.Request, want sets.Set[string]) {
	t.Helper()
	accepted := map[string]int{}
	for _, r := range requests {
		if r.Resource == "pods" && r.Subresource == "eviction" && r.Code < 300 {
			accepted[r.Name]++
		}
	}
	for name, times := range accepted {
		if times != 1 || !want.Has(name) {
			t.Errorf("pod %s was evicted %d times; want the pods %v once each", name, times, sets.List(want))
		}
	}
	if len(accepted) != len(want) {
		t.Errorf("%d pods were evicted; want %d", len(accepted), len(want))
	}
}

func podNames(t *testing.T, app string) sets.Set[string] {
	t.Helper()
	names := sets.New[string]()
	for _, pod := range standing(t, app) {
		names.Insert(pod.Name)
	}
	return names
}

// eachNodeHasAnEvent waits until the events EvictingPods of the pool name each of its nodes once. Nodes
// whose turn comes at the same moment share an event.
func (g *gentle) eachNodeHasAnEvent(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "each node of the pool has an event EvictingPods", func() error {
		times := map[string]int{}
		events := cluster.Events(t, "NodePool", g.pool.Name)
		for _, e := range events {
			if strings.HasPrefix(e, "Normal EvictingPods: emptying ") && strings.HasSuffix(e, " within budgets, to add a NoExecute taint") {
				for _, word := range strings.FieldsFunc(e, func(r rune) bool { return strings.ContainsRune(" ,()", r) }) {
					times[word]++
				}
			}
		}
		for _, name := range g.nodes {
			if times[name] != 1 {
				return fmt.Errorf("node %s is named %d times in %q", name, times[name], events)
			}
		}
		return nil
	})
}

// TestWithinBudgets checks that the nodes of a pool get a NoExecute taint without any pod being
// deleted past its PodDisruptionBudget: each node is closed first, and tainted when it is empty.
func TestWithinBudgets(t *testing.T) {
	manager := cluster.StartManager(t, "--no-execute-share=34", "--no-execute-interval=1s")
	g := newGentle(t, "gentle", 6, 12, 11)
	g.closeAtOnce()
	audit := cluster.Audit(t, "tidekeeper/")
	follow := watchNodesAndPods(t, "gentle")
	cluster.Apply(t, g.pool)
	g.done(t)
	events := follow()
	g.checkHistory(t, events, 11, 2)
	evicted := g.evictedOnce(t, audit.Requests(t), events)
	g.eachNodeHasAnEvent(t)
	if p := eventuallyReason(t, "gentle", "Healthy"); p.Status.Emptying != nil {
		t.Errorf("after all, the status is %+v", p.Status.Emptying)
	}
	if accepted := manager.ReadMetrics(t).SumOf("tidekeeper_nodepool_evictions_total", "result", "Accepted"); accepted != float64(evicted) {
		t.Errorf("%v evictions are counted; want %d", accepted, evicted)
	}
	manager.AssertIdle(t)
}

// TestWithinBudgetsBlocked checks that a pod whose budget allows nothing keeps its own node from
// being tainted, and no other, that the pool says so, and that the node goes on as soon as the
// budget allows it.
func TestWithinBudgetsBlocked(t *testing.T) {
	manager := cluster.StartManager(t, quickly...)
	g := newGentle(t, "stubborn", 3, 1, 1)
	on := standing(t, "stubborn")[0]
	cluster.Apply(t, g.pool)
	p := g.blocked(t, 1)
	want := &tidekeeperv1.EmptyingStatus{Nodes: 1, BlockedNodes: 1, Blocked: &tidekeeperv1.BlockedNode{
		Node: on.Spec.NodeName, Pods: 1, Pod: "default/" + on.Name, Since: p.Status.Emptying.Blocked.Since,
		Message: "The disruption budget stubborn needs 1 healthy pods and has 1 currently",
	}}
	if d := diff(want, p.Status.Emptying); d != nil {
		t.Error(d)
	}
	message := fmt.Sprintf("node %s cannot be emptied within budgets: 1 pod is left, for instance default/%s: %s", on.Spec.NodeName, on.Name, want.Blocked.Message)
	if ready := meta.FindStatusCondition(p.Status.Conditions, "Ready"); !strings.HasSuffix(ready.Message, "1 of them is being emptied within budgets; "+message) {
		t.Errorf("the condition Ready says %q", ready.Message)
	}
	cluster.EventuallyEvent(t, "NodePool", "stubborn", "Warning EvictionBlocked: "+message)
	for _, name := range g.nodes {
		effect := "NoExecute"
		if name == on.Spec.NodeName {
			effect = "NoSchedule"
		}
		framework.Eventually(t, name+" has its taint", func() error { return diff([]string{g.taint(effect)}, shapeOf(t, name).Taints) })
	}
	for _, state := range []string{"emptying", "blocked"} {
		framework.Eventually(t, "one node is counted as "+state, func() error {
			return gauge(manager.ReadMetrics(t), 1, "tidekeeper_nodepool_nodes", map[string]string{"pool": "stubborn", "state": state})
		})
	}
	if now := standing(t, "stubborn"); len(now) != 1 || now[0].UID != on.UID {
		t.Errorf("the pod was replaced: %v", now)
	}
	g.allow(t, 0)
	g.done(t)
}

// TestWithinBudgetsAfterKills checks that managers that are killed again and again empty the same
// nodes, keep the budget, and evict no pod twice.
func TestWithinBudgetsAfterKills(t *testing.T) {
	flags := []string{"--no-execute-share=50", "--no-execute-interval=1s"}
	g := newGentle(t, "murdered", 4, 8, 7)
	g.closeAtOnce()
	before := podNames(t, "murdered")
	audit := cluster.Audit(t, "tidekeeper/")
	follow := watchNodesAndPods(t, "murdered")
	manager := cluster.StartManager(t, flags...)
	cluster.Apply(t, g.pool)
	// A manager that is killed during an eviction may leave a pod that counts as disrupted for its budget,
	// and has not been deleted. kube-controller-manager forgets that after two minutes.
	awaitLeft := func(left int) {
		t.Helper()
		framework.EventuallyWithin(t, 2*framework.Patience, fmt.Sprintf("%d pods are left", left), func() error {
			if now := len(before.Intersection(podNames(t, "murdered"))); now > left {
				return fmt.Errorf("%d are", now)
			}
			return nil
		})
	}
	for left := len(before); left > 1; left -= 2 {
		awaitLeft(left)
		manager.Kill(t)
		manager = cluster.StartManager(t, flags...)
	}
	awaitLeft(0)
	g.done(t)
	events := follow()
	g.checkHistory(t, events, 7, 2)
	g.evictedOnce(t, audit.Requests(t), events)
}
