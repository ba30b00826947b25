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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// maintaining turns the controller on.
const maintaining = "--controllers=*,node-maintenance"

// maintenanceOf returns a NodeMaintenance of the nodes with the role label of a pool.
func maintenanceOf(pool string, until tidekeeperv1.MaintenanceEnd) *tidekeeperv1.NodeMaintenance {
	return &tidekeeperv1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: pool},
		Spec: tidekeeperv1.NodeMaintenanceSpec{
			Nodes: tidekeeperv1.MaintenanceNodes{Selector: &tidekeeperv1.NodeSelector{MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: role(pool), Operator: metav1.LabelSelectorOpExists}}}},
			Until: until,
		},
	}
}

// onPool returns a Deployment whose pods run on the nodes of a pool, and are ready after a second.
func onPool(name, pool string, replicas int32) *appsv1.Deployment {
	d := deployment(name, replicas, corev1.PodSpec{
		NodeSelector: map[string]string{role(pool): ""}, Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/ready-after": "1s"}
	return d
}

// minAvailableOf returns a PodDisruptionBudget for the pods of a Deployment.
func minAvailableOf(d *appsv1.Deployment, minAvailable intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &minAvailable, Selector: d.Spec.Selector},
	}
}

// eventuallyMaintained waits until the status of a NodeMaintenance satisfies a check. A manager that is
// killed during an eviction may block the pod's budget for two minutes, as in TestWithinBudgetsAfterKills.
func eventuallyMaintained(t *testing.T, m *tidekeeperv1.NodeMaintenance, what string, check func(*tidekeeperv1.NodeMaintenance) error) {
	t.Helper()
	framework.EventuallyWithin(t, 2*framework.Patience, "NodeMaintenance "+m.Name+" "+what, func() error {
		cluster.Refresh(t, m)
		return check(m)
	})
}

func isComplete(m *tidekeeperv1.NodeMaintenance) error {
	return framework.ReadyIs(m.Status.Conditions, m.Generation, tidekeeperv1.ReasonComplete)
}

// inPhase returns a check that a node is in a phase.
func inPhase(node string, phase tidekeeperv1.NodePhase) func(*tidekeeperv1.NodeMaintenance) error {
	return func(m *tidekeeperv1.NodeMaintenance) error { return diff(phase, m.Status.Nodes[node].Phase) }
}

// withoutTrace checks that nothing of a maintenance is left on nodes, and no ScheduledRestart.
func withoutTrace(t *testing.T, names []string) {
	t.Helper()
	framework.Eventually(t, "no trace is left of the maintenance", func() error {
		for _, name := range names {
			node := framework.Node(name)
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
				if apierrors.IsNotFound(err) {
					continue
				}
				return err
			}
			_, labeled := node.Labels[tidekeeperv1.DrainedLabel]
			if node.Spec.Unschedulable || labeled || node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] != "" || node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] != "" {
				return fmt.Errorf("node %s: unschedulable %t, labels %v, annotations %v", name, node.Spec.Unschedulable, node.Labels, node.Annotations)
			}
			if isDue(node) {
				return fmt.Errorf("node %s has the taints %v", name, node.Spec.Taints)
			}
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeDrained && c.Status == corev1.ConditionTrue {
					return fmt.Errorf("node %s has the condition %s", name, c.Type)
				}
			}
		}
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := cluster.List(t.Context(), list, client.HasLabels{tidekeeperv1.NodeMaintenanceLabel}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("ScheduledRestart %s is left", list.Items[0].Name)
		}
		return nil
	})
}

// TestMaintenance checks that every node of a pool is drained once, that a workload with one replica
// and a workload whose budget allows no disruption always have their ready pods, and that nothing is
// left behind. The manager is killed several times meanwhile.
func TestMaintenance(t *testing.T) {
	lease := cluster.ElectUntilReleased(t)
	start := func() *framework.Manager { return cluster.StartManager(t, append([]string{maintaining}, lease...)...) }
	manager := start()
	names := addMembers(t, "maint", 4)
	single, strict, loose := onPool("maint-single", "maint", 1), onPool("maint-strict", "maint", 3), onPool("maint-loose", "maint", 3)
	for _, d := range []*appsv1.Deployment{single, strict, loose} {
		cluster.Apply(t, d)
	}
	cluster.Apply(t, minAvailableOf(strict, intstr.FromInt32(3)))
	cluster.Apply(t, minAvailableOf(loose, intstr.FromInt32(2)))
	for _, d := range []*appsv1.Deployment{single, strict, loose} {
		eventuallyReady(t, d)
	}
	ready := cluster.WatchReady(t, map[string]int{single.Name: 1, strict.Name: 3, loose.Name: 2})
	audit := cluster.Audit(t, "tidekeeper/")
	m := maintenanceOf("maint", tidekeeperv1.UntilDrained)
	cluster.Apply(t, m)
	for range 3 {
		done := m.Status.Done
		eventuallyMaintained(t, m, "makes progress", func(m *tidekeeperv1.NodeMaintenance) error {
			if m.Status.Done == done && isComplete(m) != nil {
				return fmt.Errorf("%d nodes are done", done)
			}
			return nil
		})
		manager.Kill(t)
		cluster.ExpireLease(t)
		manager = start()
	}
	eventuallyMaintained(t, m, "is complete", isComplete)
	for _, name := range names {
		if err := inPhase(name, tidekeeperv1.NodeDone)(m); err != nil {
			t.Errorf("node %s %v", name, err)
		}
	}
	withoutTrace(t, names)
	for _, problem := range ready() {
		t.Error(problem)
	}
	evicted, cordoned, interrupted := map[string]int{}, map[string]int{}, map[string]int{}
	for _, r := range audit.Requests(t) {
		switch {
		case r.Writes() && r.Resource == "nodes" && r.Subresource == "" && r.Code >= 499:
			interrupted[r.Name]++ // The manager was killed, and the node may have been patched all the same.
		case r.Code >= 300 || !r.Writes():
		case r.Resource == "pods" && r.Subresource == "eviction":
			evicted[r.Name]++
		case r.Resource == "nodes" && r.Subresource == "" && strings.HasPrefix(r.Name, "maint-"):
			cordoned[r.Name]++
		}
	}
	for name, count := range evicted {
		if count > 1 {
			t.Errorf("pod %s was evicted %d times", name, count)
		}
	}
	if len(evicted) == 0 {
		t.Error("no pod was evicted")
	}
	for _, name := range names {
		if n := cordoned[name]; n > 3 || n+interrupted[name] < 2 {
			t.Errorf("node %s was patched %d times, want 3: due, except for the first node, cordoned and uncordoned; %d patches were interrupted", name, n, interrupted[name])
		}
	}
	cluster.Delete(t, m)
}

// TestMaintenance_RestartMovesAll checks that no pod is evicted while a restart of its Deployment moves it:
// the Deployment would replace it by a pod of the old template, which the restart replaces once more.
func TestMaintenance_RestartMovesAll(t *testing.T) {
	cluster.StartManager(t, maintaining)
	names := addMembers(t, "together", 1)
	d := onPool("together", "together", 2)
	d.Spec.MinReadySeconds = 5 // The old pods stay while new ones are ready, and their budget would allow evictions.
	cluster.Apply(t, d)
	cluster.Apply(t, minAvailableOf(d, intstr.FromInt32(1)))
	eventuallyReady(t, d)
	before := podNames(t, "together")
	cluster.AddNodes(t, "together-other", 1, "--pool", "together") // No pod was placed on this node.
	follow := watchNodesAndPods(t, "together")
	m := maintenanceOf("together", tidekeeperv1.UntilDrained)
	m.Spec.Nodes = tidekeeperv1.MaintenanceNodes{Names: names}
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "is complete", isComplete)
	after := podNames(t, "together")
	for _, event := range follow() {
		if pod, is := event.Object.(*corev1.Pod); is && !before.Has(pod.Name) && !after.Has(pod.Name) {
			t.Fatalf("pod %s was created and deleted during the maintenance; there were %v before, and %v afterwards", pod.Name, before, after)
		}
	}
	if len(after) != 2 || len(before.Intersection(after)) > 0 {
		t.Errorf("pods %v were replaced by %v", before, after)
	}
}

// TestMaintenance_NodeIsEmptiedFirst checks that a restart which moves a pod of several replaces the pod on
// the drained node first, so that the node does not wait for the entire rollout. Without the annotation of
// the pod, the ReplicaSet would first delete one of the two pods that share the other node.
func TestMaintenance_NodeIsEmptiedFirst(t *testing.T) {
	cluster.StartManager(t, maintaining)
	addMembers(t, "first", 2)
	d := onPool("first", "first", 3)
	cluster.Apply(t, d)
	cluster.Apply(t, minAvailableOf(d, intstr.FromInt32(3)))
	eventuallyReady(t, d)
	byNode := map[string][]string{}
	for _, pod := range standing(t, "first") {
		byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod.Name)
	}
	var drained, alone string
	for node, names := range byNode {
		if len(names) == 1 {
			drained, alone = node, names[0]
		}
	}
	if len(byNode) != 2 || alone == "" {
		t.Fatalf("the three pods are on %v, want two nodes", byNode)
	}
	before := podNames(t, "first")
	follow := watchNodesAndPods(t, "first")
	m := maintenanceOf("first", tidekeeperv1.UntilDrained)
	m.Spec.Nodes = tidekeeperv1.MaintenanceNodes{Names: []string{drained}}
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "is complete", isComplete)
	for _, event := range follow() {
		if pod, is := event.Object.(*corev1.Pod); is && before.Has(pod.Name) && pod.DeletionTimestamp != nil {
			if pod.Name != alone {
				t.Errorf("pod %s on node %s was replaced first, want %s on the drained node %s", pod.Name, pod.Spec.NodeName, alone, drained)
			}
			return
		}
	}
	t.Error("no pod was replaced")
}

// TestMaintenance_WaitsForTheAnnotation checks that a drained node says so, and returns once its
// annotation is removed. The next node comes afterwards.
func TestMaintenance_WaitsForTheAnnotation(t *testing.T) {
	cluster.StartManager(t, maintaining)
	names := addMembers(t, "handover", 2)
	m := maintenanceOf("handover", "")
	cluster.Apply(t, m)
	for i, name := range names {
		eventuallyMaintained(t, m, "has drained "+name, func(m *tidekeeperv1.NodeMaintenance) error {
			if !m.Status.Nodes[name].Marked {
				return fmt.Errorf("%+v", m.Status.Nodes)
			}
			return nil
		})
		node := framework.Node(name)
		cluster.Refresh(t, node)
		drained := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeDrained && c.Status == corev1.ConditionTrue
		})
		if node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] != m.Name || node.Labels[tidekeeperv1.DrainedLabel] != "true" || !node.Spec.Unschedulable || !drained {
			t.Errorf("drained node %s: annotations %v, labels %v, unschedulable %t, conditions %+v", name, node.Annotations, node.Labels, node.Spec.Unschedulable, node.Status.Conditions)
		}
		cluster.EventuallyEvent(t, "Node", name, "Normal NodeDrained: NodeMaintenance handover: drained for maintenance; waits until the annotation tidekeeper.dev/drained-for-maintenance is removed")
		if i == 0 {
			if _, begun := m.Status.Nodes[names[1]]; begun {
				t.Errorf("the drain of %s has begun while %s is unavailable", names[1], name)
			}
		}
		cluster.Change(t, node, func() { delete(node.Annotations, tidekeeperv1.DrainedForMaintenanceAnnotation) })
		eventuallyMaintained(t, m, "has "+name+" back", inPhase(name, tidekeeperv1.NodeDone))
	}
	eventuallyMaintained(t, m, "is complete", isComplete)
	withoutTrace(t, names)
}

// TestMaintenance_OthersAreLeftAlone checks that nodes which another client has cordoned or is draining
// are not touched, that a node which another client uncordons by hand is left alone, and that a deleted
// NodeMaintenance leaves nothing behind.
func TestMaintenance_OthersAreLeftAlone(t *testing.T) {
	names := addMembers(t, "alone", 4)
	cordoned, kured := framework.Node(names[0]), framework.Node(names[1])
	cluster.Change(t, cordoned, func() { cordoned.Spec.Unschedulable = true })
	cluster.Change(t, kured, func() {
		kured.Annotations = map[string]string{"weave.works/kured-reboot-in-progress": "2026-06-09T12:00:00Z"}
	})
	// A manager that sees these edits later than the NodeMaintenance would begin with the first node.
	cluster.StartManager(t, maintaining)
	m := maintenanceOf("alone", "")
	three := intstr.FromInt32(3)
	m.Spec.MaxUnavailable = &three
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "has drained the third node", inPhase(names[2], tidekeeperv1.NodeDrained))
	if len(m.Status.Nodes) != 1 {
		t.Errorf("with a limit of three, two of them unavailable: %+v", m.Status.Nodes)
	}
	third := framework.Node(names[2])
	cluster.Change(t, third, func() { third.Spec.Unschedulable = false })
	eventuallyMaintained(t, m, "has released the third node", inPhase(names[2], tidekeeperv1.NodeReleased))
	eventuallyMaintained(t, m, "has drained the fourth node", inPhase(names[3], tidekeeperv1.NodeDrained))
	cluster.Refresh(t, third)
	if third.Spec.Unschedulable {
		t.Error("the node that was uncordoned by hand is cordoned again")
	}
	cluster.Delete(t, m)
	withoutTrace(t, names[2:])
	cluster.Refresh(t, cordoned)
	if !cordoned.Spec.Unschedulable {
		t.Error("the node that another client had cordoned was uncordoned")
	}
}

// TestMaintenance_Blocked checks that a pod whose budget allows nothing, and that cannot be moved by a
// restart, blocks its node, which the status reports; that a Freeze holds evictions back; and that the node fails
// in time, is used again, and stops the maintenance until it is edited.
func TestMaintenance_Blocked(t *testing.T) {
	clock := framework.NewStandingClock(t, time.Now().Truncate(time.Second).Add(time.Hour))
	cluster.WithClocks(t).StartManager(t, maintaining, clock.Flag())
	names := addMembers(t, "blocked", 2)
	d := recreated(t, "blocked")
	cluster.Apply(t, minAvailableOf(d, intstr.FromInt32(1)))
	on := nodeOf(t, d)
	m := maintenanceOf("blocked", "")
	m.Spec.Nodes = tidekeeperv1.MaintenanceNodes{Names: []string{on}}
	m.Spec.DrainTimeoutSeconds = 600
	cluster.Apply(t, m)
	eventuallyMaintained(t, m, "says what blocks it", func(m *tidekeeperv1.NodeMaintenance) error {
		p := m.Status.Nodes[on]
		if p.Reason != "Budget" || !strings.Contains(p.Message, "Deployment/blocked") || !strings.Contains(p.Message, "disruption budget") {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	clock.Set(t, clock.Now(t).Add(11*time.Minute))
	eventuallyMaintained(t, m, "has failed", func(m *tidekeeperv1.NodeMaintenance) error {
		return errors.Join(inPhase(on, tidekeeperv1.NodeFailed)(m), diff(tidekeeperv1.ReasonDrainTimeout, m.Status.Nodes[on].Reason),
			framework.ReadyIs(m.Status.Conditions, m.Generation, tidekeeperv1.ReasonFailureLimit))
	})
	withoutTrace(t, names)
	if got := nodeOf(t, d); got != on {
		t.Errorf("the pod was moved from %s to %s", on, got)
	}
}

// nodeOf returns the node of the only pod of a Deployment.
func nodeOf(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("%d pods of %s", len(list.Items), d.Name)
	}
	return list.Items[0].Spec.NodeName
}
