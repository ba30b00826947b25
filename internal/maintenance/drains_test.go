// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// delays is a queue that records the delays of the requests that are added.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []time.Duration
}

func (d *delays) AddAfter(_ reconcile.Request, after time.Duration) { d.added = append(d.added, after) }

// TestPodsAreListedWithPauses checks that changes of pods within lookPause cause a single list of the
// pods of their node, at the end of that pause.
func TestPodsAreListedWithPauses(t *testing.T) {
	noon := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakePassiveClock(noon)
	d := newDrains(c)
	status := &tidekeeperv1.NodeMaintenanceStatus{Nodes: map[string]tidekeeperv1.NodeProgress{"a": {UID: "1", StartTime: metav1.NewTime(noon)}}}
	d.watch("weekly", status, []string{"a"}, []string{"a"})
	queue := &delays{}
	changed := func(node string) time.Duration {
		t.Helper()
		queue.added = nil
		d.enqueue(&corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}, queue)
		if len(queue.added) != 1 {
			t.Fatalf("the node is queued %d times", len(queue.added))
		}
		return queue.added[0]
	}
	if got := changed("a"); got != 0 {
		t.Errorf("before the first list: after %s, want at once", got)
	}
	d.look("a")
	c.SetTime(noon.Add(100 * time.Millisecond))
	if got := changed("a"); got != lookPause-100*time.Millisecond {
		t.Errorf("100 ms after a list: after %s, want the rest of %s", got, lookPause)
	}
	c.SetTime(noon.Add(2 * time.Second))
	if got := changed("a"); got != 0 {
		t.Errorf("two seconds after a list: after %s, want at once", got)
	}
	c.SetTime(noon.Add(-time.Hour))
	if got := changed("a"); got != 0 {
		t.Errorf("after the clock was set back: after %s, want at once", got)
	}
	queue.added = nil
	d.enqueue(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "b"}}, queue)
	if len(queue.added) != 0 {
		t.Error("a node is queued that is not being drained")
	}
}

// TestTerminatingPods checks that the beginning of a pod's deletion does not cause a look at its node,
// because the pause after that look would delay the look that finds the node empty. The pod's end does.
func TestTerminatingPods(t *testing.T) {
	noon := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	d := newDrains(clocktesting.NewFakePassiveClock(noon))
	status := &tidekeeperv1.NodeMaintenanceStatus{Nodes: map[string]tidekeeperv1.NodeProgress{"a": {UID: "1", StartTime: metav1.NewTime(noon)}}}
	d.watch("weekly", status, []string{"a"}, []string{"a"})
	running := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	terminating, ended := running.DeepCopy(), running.DeepCopy()
	terminating.DeletionTimestamp, ended.DeletionTimestamp = new(metav1.NewTime(noon)), new(metav1.NewTime(noon))
	ended.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want int
	}{"running": {running, 1}, "terminating": {terminating, 0}, "ended": {ended, 1}} {
		queue := &delays{}
		podChanges(d).Update(t.Context(), event.UpdateEvent{ObjectOld: running, ObjectNew: tc.pod}, queue)
		if len(queue.added) != tc.want {
			t.Errorf("a change of a pod that is %s queues its node %d times, want %d", name, len(queue.added), tc.want)
		}
	}
	queue := &delays{}
	if podChanges(d).Delete(t.Context(), event.DeleteEvent{Object: terminating}, queue); len(queue.added) != 1 {
		t.Errorf("the end of a pod queues its node %d times", len(queue.added))
	}
}

// TestLastPodCausesALookAtOnce checks that the end of the last pod that had to leave a node queues the
// node without a pause, once for each list of its pods. The ends of other pods wait for the pause.
func TestLastPodCausesALookAtOnce(t *testing.T) {
	noon := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	d := newDrains(clocktesting.NewFakePassiveClock(noon))
	status := &tidekeeperv1.NodeMaintenanceStatus{Nodes: map[string]tidekeeperv1.NodeProgress{"a": {UID: "1", StartTime: metav1.NewTime(noon)}}}
	d.watch("weekly", status, []string{"a"}, []string{"a"})
	pod := func(uid types.UID, owner string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: uid, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "o", UID: "o", Controller: new(true)}}},
			Spec:       corev1.PodSpec{NodeName: "a"},
		}
	}
	first, second, agent, late := pod("1", "ReplicaSet"), pod("2", "ReplicaSet"), pod("3", "DaemonSet"), pod("4", "ReplicaSet")
	d.look("a")
	d.listed("a", []corev1.Pod{first, second, agent})
	for _, step := range []struct {
		name string
		pod  corev1.Pod
		want time.Duration
	}{
		{"one of two pods", first, lookPause},
		{"the same pod again", first, lookPause},
		{"a pod of a DaemonSet", agent, lookPause},
		{"a pod that was not listed", late, lookPause},
		{"the last pod", second, 0},
		{"the last pod again", second, lookPause},
	} {
		queue := &delays{}
		if podChanges(d).Delete(t.Context(), event.DeleteEvent{Object: &step.pod}, queue); len(queue.added) != 1 || queue.added[0] != step.want {
			t.Errorf("the end of %s queues the node after %v, want %s", step.name, queue.added, step.want)
		}
	}
}

// TestChangesInANamespaceCauseALook checks that a change of a PodDisruptionBudget, or of a restart that
// moves pods, queues the nodes that pods of its namespace have to leave, and no other node.
func TestChangesInANamespaceCauseALook(t *testing.T) {
	noon := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakePassiveClock(noon)
	d := newDrains(c)
	status := &tidekeeperv1.NodeMaintenanceStatus{Nodes: map[string]tidekeeperv1.NodeProgress{"a": {UID: "1", StartTime: metav1.NewTime(noon)}, "b": {UID: "2", StartTime: metav1.NewTime(noon)}}}
	d.watch("weekly", status, []string{"a", "b"}, []string{"a"})
	pod := func(namespace, owner string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: "o", UID: "o", Controller: new(true)}}}}
	}
	for _, node := range []string{"a", "b"} {
		d.look(node)
		d.listed(node, []corev1.Pod{pod("shop", "ReplicaSet"), pod("logging", "DaemonSet")})
	}
	for namespace, want := range map[string]int{"shop": 1, "logging": 0, "other": 0} {
		queue := &delays{}
		d.enqueueWaiting(namespace, queue)
		if len(queue.added) != want {
			t.Errorf("a change in the namespace %s queues %d nodes, want %d", namespace, len(queue.added), want)
		}
		if want > 0 && queue.added[0] != lookPause {
			t.Errorf("the node is queued after %s, want %s", queue.added[0], lookPause)
		}
	}
	queue := &delays{}
	informers := &informertest.FakeInformers{Scheme: scheme.Scheme}
	if err := budgetChanges(informers, d).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	budgets, err := informers.FakeInformerFor(t.Context(), &policyv1.PodDisruptionBudget{})
	if err != nil {
		t.Fatal(err)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	budgets.Add(budget)
	budgets.Update(budget, budget)
	budgets.Delete(budget)
	restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{tidekeeperv1.NodeMaintenanceLabel: "weekly"}}}
	restartChanges(d).Update(t.Context(), event.UpdateEvent{ObjectOld: restart, ObjectNew: restart}, queue)
	restartChanges(d).Update(t.Context(), event.UpdateEvent{ObjectOld: restart, ObjectNew: &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}}}, queue)
	if len(queue.added) != 4 {
		t.Errorf("three changes of a budget and one of a restart that moves pods queue the node %d times", len(queue.added))
	}
	d.listed("a", nil)
	queue.added = nil
	if d.enqueueWaiting("shop", queue); len(queue.added) != 0 {
		t.Error("a node is queued that no pod of the namespace has to leave any more")
	}
}
