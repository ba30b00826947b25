// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestPriorityOfCopies compares pools fit with the scheduler for each way in which a copy gets its
// priority: by its PriorityClass, by --priority-class instead of that, and by the cluster's default.
func TestPriorityOfCopies(t *testing.T) {
	applyPriorities(t)
	w := newWorld(t, "classes", rand.New(rand.NewPCG(1, 1)))
	w.addPlain(t, "classes-0", "")
	w.awaitNodes(t)
	w.start(t, "web", corev1.PodSpec{NodeName: "classes-0", PriorityClassName: "fit-low", Containers: []corev1.Container{container("app", list("cpu", "2"))}})
	w.awaitPods(t)
	spec := func(class string) corev1.PodSpec {
		return corev1.PodSpec{NodeSelector: map[string]string{worldLabel: w.name}, PriorityClassName: class, Containers: []corev1.Container{container("app", list("cpu", "1"))}}
	}
	d := framework.Deployment("copies", 0, spec(""))
	d.Namespace = w.name
	cluster.Apply(t, d)
	like, high, polite := []string{"--like", "deployment/copies"}, manifest(t, podOf(spec("fit-high"))), manifest(t, podOf(spec("fit-polite")))
	ask := func(stdin string, want *int32, args ...string) {
		t.Helper()
		if stdin != "" {
			args = append(args, "-f", "-")
		}
		says := w.fit(t, stdin, args...)
		if p := says.Preemption; says.Copies != 0 || (p != nil) != (want != nil) || p != nil && (p.Priority != *want || !slices.Equal(namesOf(p), []string{"running-0"})) {
			t.Errorf("pools fit %s: %+v, preemption %+v, want no copies and a preemption by priority %v", args, says, p, want)
		}
	}
	ask("", new(int32(0)), like...)
	ask("", new(int32(1000)), append(like, "--priority-class", "fit-high")...)
	ask("", new(int32(2000000000)), append(like, "--priority-class", "system-cluster-critical")...)
	ask("", nil, append(like, "--priority-class", "fit-polite")...)
	ask("", nil, append(like, "--priority-class", "fit-low")...)
	ask(high, new(int32(1000)))
	ask(high, nil, "--priority-class", "fit-low")
	ask(high, nil, "--priority-class", "fit-polite")
	ask(polite, nil)
	ask(polite, new(int32(100)), "--priority-class", "fit-middle")

	// Another administrator makes a class the default that is below all others.
	cluster.Apply(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "fit-lowest"}, Value: -20, GlobalDefault: true})
	framework.Eventually(t, "pods get the default priority", func() error {
		p := podOf(spec(""))
		p.Namespace = w.name
		if err := cluster.Create(t.Context(), p, client.DryRunAll); err != nil {
			return err
		}
		if p.Spec.Priority == nil || *p.Spec.Priority != -20 {
			return errors.New("it is another")
		}
		return nil
	})
	ask("", nil, like...)
	ask(manifest(t, podOf(spec(""))), nil)
	ask("", new(int32(1000)), append(like, "--priority-class", "fit-high")...)
	// Without a class, the scheduler evicts nothing, nor does it for a class that never preempts.
	for name, class := range map[string]string{"lowest": "", "polite": "fit-polite"} {
		p := podOf(spec(class))
		p.Namespace, p.Name = w.name, name
		if err := cluster.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		w.refuses(t, p, "")
	}
	p := podOf(spec("fit-high"))
	p.Namespace = w.name
	if err := cluster.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.refuses(t, p, "classes-0")
	w.evicts(t, "running-0")
}

// refuses waits until the scheduler has found no node for a pod, and has nominated the given one. It
// fails the test if it has nominated another.
func (w *world) refuses(t *testing.T, p *corev1.Pod, node string) {
	t.Helper()
	framework.Eventually(t, "the scheduler finds no node for "+p.Name, func() error {
		if cluster.Refresh(t, p); unschedulable(p) == "" {
			return fmt.Errorf("it is on %q", p.Spec.NodeName)
		}
		return nil
	})
	if p.Status.NominatedNodeName != node {
		t.Errorf("the scheduler nominates %q for %s, want %q", p.Status.NominatedNodeName, p.Name, node)
	}
}

// evicts waits until the scheduler has evicted the pods.
func (w *world) evicts(t *testing.T, names ...string) {
	t.Helper()
	framework.Eventually(t, "the scheduler evicts pods", func() error {
		if got := w.preempted(t); !slices.Equal(got, names) {
			return fmt.Errorf("it has evicted %q, want %q", got, names)
		}
		return nil
	})
}

// TestPendingBeforeEvictions checks that pools pending names the pods that the scheduler would evict
// for a pod that it has refused, while the scheduler is paused and the pods on the node are replaced by
// others of lower priority. The scheduler then evicts these.
func TestPendingBeforeEvictions(t *testing.T) {
	applyPriorities(t)
	w := newWorld(t, "before", rand.New(rand.NewPCG(1, 1)))
	w.addPlain(t, "before-0", "")
	w.addPlain(t, "before-1", "")
	w.awaitNodes(t)
	busy := func(node, class, cpu string) {
		w.start(t, "web", corev1.PodSpec{NodeName: node, PriorityClassName: class, Containers: []corev1.Container{container("app", list("cpu", cpu))}})
	}
	busy("before-0", "fit-high", "2")
	busy("before-1", "fit-high", "2")
	p := podOf(corev1.PodSpec{NodeSelector: map[string]string{worldLabel: w.name}, PriorityClassName: "fit-high", Containers: []corev1.Container{container("app", list("cpu", "1"))}})
	p.Namespace, p.Name = w.name, "needs"
	if err := cluster.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.pods++
	w.refuses(t, p, "")
	pending := func() *capacity.Preemption {
		t.Helper()
		synced(t)
		groups := w.pending(t, 2)
		for _, g := range groups {
			if g.Namespace == w.name && slices.Equal(g.Pods, []string{"needs"}) {
				return g.Preemption
			}
		}
		t.Fatalf("pools pending does not have the pod: %+v", groups)
		return nil
	}
	if is := pending(); is != nil {
		t.Errorf("the scheduler cannot evict pods of equal priority, and pools pending says %+v", is)
	}
	cluster.Component(t, "pause", "kube-scheduler")
	paused := true
	t.Cleanup(func() {
		if paused {
			cluster.Component(t, "resume", "kube-scheduler")
		}
	})
	busy("before-1", "fit-low", "1200m")   // running-3
	busy("before-1", "fit-low", "300m")    // running-4
	busy("before-1", "fit-middle", "200m") // running-5
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "running-1", Namespace: w.name}}
	if err := cluster.Client.Delete(t.Context(), gone, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	is := pending()
	if is == nil || is.Node != "before-1" || is.Underway || is.Pod != "needs" || !slices.Equal(namesOf(is), []string{"running-3"}) || is.CopiesAfter != 1 {
		t.Errorf("the scheduler would evict running-3, and pools pending says %+v", is)
	}
	cluster.Component(t, "resume", "kube-scheduler")
	paused = false
	w.evicts(t, "running-3")
	framework.Eventually(t, "the scheduler has nominated the node", func() error {
		if cluster.Refresh(t, p); p.Status.NominatedNodeName != "before-1" {
			return fmt.Errorf("it is %q", p.Status.NominatedNodeName)
		}
		return nil
	})
	if is := pending(); is == nil || is.Node != "before-1" || !is.Underway || !slices.Equal(namesOf(is), []string{"running-3"}) {
		t.Errorf("the scheduler evicts running-3, and pools pending says %+v", is)
	}
}
