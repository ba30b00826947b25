// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// ranked returns a pod on a node, with a priority and the second at which it started. Its app is
// its name up to the first dash.
func ranked(name, on string, cpu string, priority int32, started int) corev1.Pod {
	p := withApp(aPod(name, "ReplicaSet", strings.Split(name, "-")[0], on, "cpu", cpu), strings.Split(name, "-")[0])
	p.Spec.Priority = &priority
	p.Status.StartTime = &metav1.Time{Time: time.Unix(int64(started), 0)}
	return p
}

// guards returns a PodDisruptionBudget for the pods of the app "web".
func guards(allowed int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selecting("web")}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// preemptionText describes a preemption in one line.
func preemptionText(p *Preemption) string {
	if p == nil {
		return "none"
	}
	text := p.Node
	for _, other := range p.EqualNodes {
		text += "=" + other
	}
	for _, v := range p.Victims {
		text += " " + v.Name
		if v.Budget != "" {
			text += "!" + v.Budget
		}
	}
	if p.Underway {
		text += " underway"
	}
	return strings.Join(append([]string{text + fmt.Sprintf(", %d after", p.CopiesAfter)}, p.Uncertain...), ", ")
}

// TestPreempt checks the choice of the node and the victims, step by step of the scheduler's order.
// The package test/room compares such answers with the scheduler's plugin.
func TestPreempt(t *testing.T) {
	const host = corev1.LabelHostname
	high := func(cpu string) corev1.Pod { return ranked("big-0", "", cpu, 500, 0) }
	never := high("3")
	never.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	gated := high("3")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
	selective := high("3")
	selective.Spec.NodeSelector = map[string]string{host: "b"}
	volume := high("3")
	volume.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
	waiting := high("3")
	waiting.Status.NominatedNodeName = "b"
	leaving := ranked("web-0", "b", "3", 0, 1)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	leaving.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	evicted := *leaving.DeepCopy()
	evicted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	nominated := ranked("other-0", "", "3", 500, 0)
	nominated.Status.NominatedNodeName = "a"
	humble := *nominated.DeepCopy()
	humble.Spec.Priority = new(int32(400))
	unstarted := ranked("web-1", "b", "3", 0, 0)
	unstarted.Status.StartTime = nil
	counted := guards(0)
	counted.Status.DisruptedPods = map[string]metav1.Time{"web-0": {}}
	foreign := guards(0)
	foreign.Namespace = "other"
	grouped := ranked("web-0", "a", "3", 0, 1)
	grouped.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
	for _, tc := range []struct {
		name    string
		pod     corev1.Pod
		running []corev1.Pod // on the nodes a, b and c with four CPUs each
		budgets []policyv1.PodDisruptionBudget
		want    string
	}{
		{"it fits", high("3"), []corev1.Pod{ranked("web-0", "a", "3", 0, 1)}, nil, "none"},
		{"nothing has a lower priority", high("3"), onAll("3", 500), nil, "none"},
		{"no priority", ranked("big-0", "", "3", 0, 0), onAll("3", 0), nil, "none"},
		{"a negative priority", ranked("big-0", "", "3", 0, 0), onAll("3", -1, 0, 0), nil, "a web-a, 1 after"},
		{"the policy Never", never, onAll("3", 0), nil, "none"},
		{"a gated pod", gated, onAll("3", 0), nil, "none"},
		{"too large", high("5"), onAll("3", 0), nil, "none"},
		{"the room of more important pods is needed", high("3"), append(onAll("2", 0), onAll("2", 500)...), nil, "none"},
		{"all is equal", high("3"), onAll("3", 0), nil, "a=b=c web-a, 1 after"},
		{"another node is selected", selective, onAll("3", 0), nil, "b web-b, 1 after"},
		{"the lowest highest priority", high("3"), onAll("3", 20, 10, 30), nil, "b web-b, 1 after"},
		{"the lowest highest priority of more pods", high("4"), []corev1.Pod{ranked("web-a", "a", "4", 30, 1), ranked("web-b", "b", "2", 10, 1), ranked("job-b", "b", "2", 10, 2), ranked("web-c", "c", "4", 40, 1)}, nil, "b web-b job-b, 1 after"},
		{"the lowest sum of priorities", high("4"), append(onAll("2", 10, 10, 10), onAll("2", 9, 7, 8)...), nil, "b web-b web-b, 1 after"},
		{"the fewest victims", high("4"), append(onAll("2", 0, -1, 0), ranked("web-b2", "b", "1", 0, 1), ranked("web-b3", "b", "1", 0, 1), ranked("job-a", "a", "2", 0, 1), ranked("job-c", "c", "1", 0, 1), ranked("job-c2", "c", "1", 0, 1)), nil, "a web-a job-a, 1 after"},
		{"the latest start", high("3"), []corev1.Pod{ranked("web-a", "a", "3", 0, 5), ranked("web-b", "b", "3", 0, 9), ranked("web-c", "c", "3", 0, 7)}, nil, "b web-b, 1 after"},
		{"a pod that has not started is the latest", high("3"), []corev1.Pod{ranked("web-a", "a", "3", 0, 5), unstarted, ranked("web-c", "c", "3", 0, 7)}, nil, "b web-1, 1 after"},
		{"important and old pods stay", high("2"), append(onAll("4", 600, 600), ranked("web-0", "c", "1", 0, 3), ranked("web-1", "c", "1", 0, 1), ranked("web-2", "c", "1", 0, 2), ranked("web-3", "c", "1", 9, 4)), nil, "c web-2 web-0, 1 after"},
		{"room for two", high("2"), append(onAll("4", 600, 600), ranked("web-0", "c", "4", 0, 3)), nil, "c web-0, 2 after"},
		{"equal pods", high("2"), append(onAll("4", 600, 600), ranked("web-0", "c", "2", 0, 1), ranked("web-1", "c", "2", 0, 1)), nil, "c web-1, 1 after, pods of equal priority and age"},
		{"a budget", high("3"), onAll("3", 0, 100, 600), []policyv1.PodDisruptionBudget{guards(0)}, "a web-a!web, 1 after"},
		{"no budget is violated", high("3"), []corev1.Pod{ranked("web-a", "a", "3", 0, 5), ranked("db-0", "b", "3", 100, 9), ranked("web-c", "c", "3", 0, 7)}, []policyv1.PodDisruptionBudget{guards(0)}, "b db-0, 1 after"},
		{"a budget allows it", high("3"), []corev1.Pod{ranked("web-a", "a", "3", 0, 5), ranked("db-0", "b", "3", 100, 9), ranked("db-1", "c", "4", 600, 7)}, []policyv1.PodDisruptionBudget{guards(1)}, "a web-a, 1 after"},
		{"a budget allows one", high("4"), append(onAll("4", 600, 600), ranked("web-0", "c", "2", 0, 3), ranked("web-1", "c", "2", 0, 1)), []policyv1.PodDisruptionBudget{guards(1)}, "c web-1 web-0!web, 1 after"},
		{"the budget's pods stay first", high("2"), append(onAll("4", 600, 600), ranked("web-0", "c", "2", 0, 3), ranked("db-1", "c", "2", 9, 1)), []policyv1.PodDisruptionBudget{guards(0)}, "c db-1, 1 after"},
		{"an eviction that the budget has counted", high("3"), append(onAll("4", 600, 600), ranked("web-0", "c", "3", 0, 3)), []policyv1.PodDisruptionBudget{counted}, "c web-0, 1 after"},
		{"a budget of another namespace", high("3"), append(onAll("4", 600, 600), ranked("web-0", "c", "3", 0, 3)), []policyv1.PodDisruptionBudget{foreign}, "c web-0, 1 after"},
		{"a conflict of host ports", withPort(high("1"), 80), []corev1.Pod{withPort(ranked("web-a", "a", "1", 600, 1), 80), withPort(ranked("web-b", "b", "1", 10, 1), 80), withPort(ranked("web-c", "c", "1", 20, 1), 80)}, nil, "b web-b, 1 after"},
		{"anti-affinity", avoids(high("1"), host, "web"), onAll("1", 600, 30, 20), nil, "c web-c, 4 after"},
		{"another pod's anti-affinity", high("1"), []corev1.Pod{avoids(ranked("web-a", "a", "1", 30, 1), host, "big"), avoids(ranked("web-b", "b", "1", 20, 1), host, "big"), avoids(ranked("web-c", "c", "1", 10, 1), host, "big")}, nil, "c web-c, 4 after"},
		{"a spread constraint", spreads(high("1"), 1, host, "web"), append(onAll("4", 600, 600), ranked("web-0", "c", "4", 0, 3)), nil, "c web-0, 4 after"},
		{"affinity to the victim", joins(high("4"), "web"), onAll("3", 0), nil, "none"},
		{"a volume", volume, append(onAll("4", 600, 600), ranked("web-0", "c", "4", 0, 3)), nil, "c web-0, 1 after, persistent volumes"},
		{"a pod group", high("3"), append(onAll("4", 0, 600, 600)[1:], grouped), nil, "a web-0, 1 after, pod groups"},
		{"it waits", waiting, []corev1.Pod{ranked("web-a", "a", "3", -1, 1), evicted, ranked("web-c", "c", "3", 0, 1)}, nil, "b web-0 underway, 1 after"},
		{"pods that were deleted otherwise", waiting, []corev1.Pod{ranked("web-a", "a", "3", -1, 1), leaving, ranked("web-c", "c", "3", 0, 1)}, nil, "a web-a, 1 after"},
		{"room for a nominated pod", high("3"), append(onAll("4", 0, 100, 600), nominated), nil, "b web-b, 1 after"},
		{"room for a less important nominated pod", high("3"), append(onAll("4", 0, 100, 600), humble), nil, "a web-a, 1 after"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes := []corev1.Node{aNode("c", "cpu", "4", "pods", "10"), aNode("a", "cpu", "4", "pods", "10"), aNode("b", "cpu", "4", "pods", "10")}
			if got := preemptionText(Preempt(newCluster(nodes, tc.running), &tc.pod, nil, NewBudgets(tc.budgets))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// onAll returns a pod on each of the nodes a, b and c. If only one priority is given, all have it.
// Otherwise, the priorities are those of the pods on a, b and, if there is a third, c.
func onAll(cpu string, priorities ...int32) (list []corev1.Pod) {
	if len(priorities) == 1 {
		priorities = slices.Repeat(priorities, 3)
	}
	for i, priority := range priorities {
		node := string(rune('a' + i))
		list = append(list, ranked("web-"+node, node, cpu, priority, 1))
	}
	return list
}

// TestPreemptionMakesRoom checks, for random clusters, that a pod fits on the node once the victims
// are gone, and no longer if any of them stays; that without an answer it would fit on no node
// without the pods of lower priority; and that the cluster is unchanged.
func TestPreemptionMakesRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := world(t)
		for i := range pods {
			pods[i].Spec.Priority = new(int32(rapid.IntRange(-1, 2).Draw(t, "priority")))
			pods[i].Status.StartTime = &metav1.Time{Time: time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "start")), 0)}
		}
		pod := aPod("big", "", "", "", "cpu", fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "cpu of the pod")))
		pod.Spec.Priority = new(int32(rapid.IntRange(0, 3).Draw(t, "priority of the pod")))
		c := newCluster(nodes, pods)
		names := namesOf(nodes)
		before := c.Members(names).Fit(&pod)
		p := Preempt(c, &pod, nil, nil)
		if after := c.Members(names).Fit(&pod); !reflect.DeepEqual(before, after) {
			t.Fatalf("before %+v, after %+v", before, after)
		}
		fitsWithout := func(node string, gone func(corev1.Pod) bool) bool {
			return newCluster(nodes, slices.DeleteFunc(slices.Clone(pods), gone)).Members([]string{node}).Fit(&pod).Copies > 0
		}
		if p == nil {
			for _, node := range names {
				lower := func(other corev1.Pod) bool {
					return other.Spec.NodeName == node && *other.Spec.Priority < *pod.Spec.Priority
				}
				if before.Copies == 0 && fitsWithout(node, lower) {
					t.Fatalf("no preemption, but it fits on %s without the pods of lower priority", node)
				}
			}
			return
		}
		if before.Copies > 0 {
			t.Fatalf("%d copies fit, and %+v", before.Copies, p)
		}
		victim := func(other corev1.Pod, stays string) bool {
			return other.Name != stays && slices.ContainsFunc(p.Victims, func(v Victim) bool { return v.Name == other.Name })
		}
		if !fitsWithout(p.Node, func(other corev1.Pod) bool { return victim(other, "") }) {
			t.Fatalf("it does not fit after %+v", p)
		}
		for _, v := range p.Victims {
			if v.Priority >= p.Priority || fitsWithout(p.Node, func(other corev1.Pod) bool { return victim(other, v.Name) }) {
				t.Fatalf("%s need not go: %+v", v.Name, p)
			}
		}
	})
}

func namesOf(nodes []corev1.Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}
