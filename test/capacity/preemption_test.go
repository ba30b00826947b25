// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// priorities maps PriorityClasses to their values. The class polite does not preempt.
var priorities = map[string]int32{"fit-low": -10, "fit-middle": 100, "fit-high": 1000, "fit-polite": 2000}

// applyPriorities creates the PriorityClasses.
func applyPriorities(t *testing.T) {
	t.Helper()
	for name, value := range priorities {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if name == "fit-polite" {
			class.PreemptionPolicy = new(corev1.PreemptNever)
		}
		cluster.Apply(t, class)
	}
}

// crowd creates a few equal nodes and fills them with pods of several priorities, each of which
// started at another time. A PodDisruptionBudget allows no eviction of the pods with app=guarded.
// Pods take minutes to terminate, so that the room of evicted pods stays taken.
func (w *world) crowd(t *testing.T) {
	t.Helper()
	cluster.Apply(t, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: w.name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(100)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	})
	for i := range 2 + w.IntN(3) {
		n := framework.Node(fmt.Sprintf("%s-%d", w.name, i))
		n.Labels = map[string]string{worldLabel: w.name, corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: w.name + oneOf(w, "-a", "-b")}
		n.Status.Allocatable = list("cpu", "2", "memory", "4Gi", "pods", "10")
		w.addNode(t, n)
	}
	w.awaitNodes(t)
	for _, n := range w.nodes {
		// The scheduler places one pod on each node, which shows that it knows the node.
		w.start(t, "", corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: n.Name}, PriorityClassName: "fit-polite", Containers: []corev1.Container{container("app", nil)},
		})
		for range 3 + w.IntN(2) {
			w.start(t, oneOf(w, "guarded", "web", "db"), corev1.PodSpec{
				NodeName: n.Name, PriorityClassName: oneOf(w, "", "fit-low", "fit-middle", "fit-high"),
				Containers: []corev1.Container{container("app", list("cpu", oneOf(w, "300m", "500m", "700m")))},
			})
		}
	}
	ready := func(p *corev1.Pod) bool { return pods.IsConditionTrue(p, corev1.PodReady) }
	running := w.awaitAll(t, "ready", ready)
	started := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range running {
		started = started.Add(time.Duration(1+w.IntN(60)) * time.Second)
		cluster.ChangeStatus(t, &running[i], func() { running[i].Status.StartTime = &metav1.Time{Time: started} })
	}
	w.awaitAll(t, "old", func(p *corev1.Pod) bool { return ready(p) && p.Status.StartTime.Year() == 2020 })
}

// start creates a pod that takes minutes to terminate once it is deleted.
func (w *world) start(t *testing.T, app string, spec corev1.PodSpec) {
	t.Helper()
	spec.TerminationGracePeriodSeconds = new(int64(600))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("running-", w.pods), Namespace: w.name, Labels: map[string]string{"app": app},
			Annotations: map[string]string{"sandbox.tidekeeper.dev/terminated-after": "10m"},
		},
		Spec: spec,
	}
	if err := cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.pods++
}

// awaitAll waits until all of the world's pods in the API server's watch cache, which the plugin
// reads, are as described. It returns the pods.
func (w *world) awaitAll(t *testing.T, what string, is func(*corev1.Pod) bool) (running []corev1.Pod) {
	t.Helper()
	framework.Eventually(t, "all pods are "+what, func() error {
		all := &corev1.PodList{}
		if err := cluster.List(t.Context(), all, client.InNamespace(w.name), cached()); err != nil {
			return err
		}
		running = slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return !is(&p) })
		if len(running) != w.pods {
			return fmt.Errorf("%d of %d", len(running), w.pods)
		}
		return nil
	})
	return running
}

// preemptor returns a pod that selects the world's nodes.
func (w *world) preemptor() *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "preemptor", Namespace: w.name, Labels: map[string]string{"app": "copy"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{worldLabel: w.name}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			PriorityClassName: oneOf(w, "fit-high", "fit-high", "fit-high", "fit-middle", "fit-polite", ""),
			Containers:        []corev1.Container{container("app", list("cpu", oneOf(w, "500m", "900m", "1500m")))},
		},
	}
	if w.chance(30) {
		term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": oneOf(w, "guarded", "db")}}, TopologyKey: corev1.LabelHostname}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	}
	return pod
}

// preempted returns the names of the world's pods that the scheduler has evicted, sorted.
func (w *world) preempted(t *testing.T) (names []string) {
	t.Helper()
	all := &corev1.PodList{}
	if err := cluster.List(t.Context(), all, client.InNamespace(w.name)); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		if c := pods.Condition(p, corev1.DisruptionTarget); c != nil && c.Reason == corev1.PodReasonPreemptionByScheduler && !p.DeletionTimestamp.IsZero() {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestPreemption checks that the scheduler evicts exactly the pods that pools fit names, for the node
// that it names, and that pools pending then names the same pods.
func TestPreemption(t *testing.T) {
	applyPriorities(t)
	inWorlds(t, "evict", func(t *testing.T, w *world) {
		w.crowd(t)
		pod := w.preemptor()
		says := w.fit(t, manifest(t, pod), "-f", "-")
		if err := cluster.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		framework.Eventually(t, "the scheduler has decided", func() error {
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			if pod.Spec.NodeName == "" && pods.Condition(pod, corev1.PodScheduled) == nil {
				return fmt.Errorf("%+v", pod.Status)
			}
			return nil
		})
		if says.Preemption == nil {
			if placed := pod.Spec.NodeName != ""; placed != (says.Copies > 0) || pod.Status.NominatedNodeName != "" {
				t.Fatalf("pools fit says %d copies and no preemption; the pod is on %q, nominated for %q\n%s", says.Copies, pod.Spec.NodeName, pod.Status.NominatedNodeName, w.describe(pod.Spec))
			}
			return
		}
		if pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != says.Preemption.Node || len(says.Preemption.Uncertain) > 0 {
			t.Fatalf("pools fit says %+v; the pod is on %q, nominated for %q\n%s", says.Preemption, pod.Spec.NodeName, pod.Status.NominatedNodeName, w.describe(pod.Spec))
		}
		want := namesOf(says.Preemption)
		framework.Eventually(t, "the scheduler has evicted "+strings.Join(want, ", "), func() error {
			if got := w.preempted(t); !slices.Equal(got, want) {
				return fmt.Errorf("it has evicted %q\n%s", got, w.describe(pod.Spec))
			}
			return nil
		})
		w.assertUnderway(t, says.Preemption)
		if got := w.preempted(t); !slices.Equal(got, want) {
			t.Errorf("the scheduler has evicted %q, want %q", got, want)
		}
	})
}

// namesOf returns the names of the victims, sorted.
func namesOf(p *capacity.Preemption) (names []string) {
	for _, v := range p.Victims {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}

// assertUnderway waits until pools pending shows the preemption as underway.
func (w *world) assertUnderway(t *testing.T, want *capacity.Preemption) {
	t.Helper()
	framework.Eventually(t, "pools pending shows that the preemption is underway", func() error {
		groups := w.pending(t)
		for _, g := range groups {
			if p := g.Preemption; g.Namespace == w.name && p != nil && p.Underway && p.Pod == "preemptor" && p.Node == want.Node && slices.Equal(namesOf(p), namesOf(want)) {
				return nil
			}
		}
		return fmt.Errorf("%+v", groups)
	})
}
