// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// aPod returns a ready pod of the Deployment web, modified by the given functions.
func aPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-abc", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = kind }
}

func deletedAt(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at} }
}

// aBudget returns a PodDisruptionBudget for the Deployment web that requires 2 of 3 pods to be
// healthy.
func aBudget(name string, healthy, allowed int32, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ExpectedPods: 3, DesiredHealthy: 2, CurrentHealthy: healthy, DisruptionsAllowed: allowed,
			Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}},
		},
	}
	for _, change := range changes {
		change(b)
	}
	return b
}

func never(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 3 }

func alwaysAllow(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
}

func unseen(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }

func everything(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }

func nothing(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil }

func elsewhere(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" }

func TestBlockers(t *testing.T) {
	node := func(name string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}
		if change != nil {
			change(n)
		}
		return n
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	local := func(hosts ...string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts,
			}}}}},
		}}}
	}
	withVolume := func(v corev1.VolumeSource) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: v})
		}
	}
	claim := withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})
	finalizer := func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/hold"} }
	tracked := func(pod *corev1.Pod) { pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"} }
	grace := func(d time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(d / time.Second)) }
	}
	static := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		pod.OwnerReferences = nil
	}
	alone := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	budgets := func(list ...*policyv1.PodDisruptionBudget) *World {
		var all []policyv1.PodDisruptionBudget
		for _, budget := range list {
			all = append(all, *budget)
		}
		return NewWorld(all, Volumes{})
	}
	volume := func(pv *corev1.PersistentVolume, others ...*corev1.Node) *World {
		return NewWorld(nil, Volumes{Of: map[[2]string]*corev1.PersistentVolume{{"shop", "data"}: pv}, Nodes: append(others, node("n1", nil))})
	}

	for _, tt := range []struct {
		name  string
		world *World
		pods  []*corev1.Pod
		want  []string
	}{
		{"nothing in the way", budgets(), []*corev1.Pod{aPod("a")}, nil},
		{"a budget with room", budgets(aBudget("web", 3, 1)), []*corev1.Pod{aPod("a"), aPod("b")}, nil},
		{"a budget without room now", budgets(aBudget("web", 2, 0)), []*corev1.Pod{aPod("a"), aPod("b")}, []string{
			"Budget Deployment/web [a b] PodDisruptionBudget/web since 11:00: the PodDisruptionBudget web allows no disruption now: 2 of 3 pods are healthy, and 2 must be",
		}},
		{"a budget that never has room", budgets(aBudget("web", 3, 0, never)), []*corev1.Pod{aPod("a")}, []string{
			"Budget Deployment/web [a] PodDisruptionBudget/web since 11:00: the PodDisruptionBudget web never allows a disruption: 3 of 3 pods must be healthy",
		}},
		{"a budget that was edited", budgets(aBudget("web", 3, 1, unseen)), []*corev1.Pod{aPod("a")}, []string{
			"Budget Deployment/web [a] PodDisruptionBudget/web since 11:00: the disruption controller has not seen the PodDisruptionBudget web as it is now",
		}},
		{"an unhealthy pod, others healthy", budgets(aBudget("web", 2, 0)), []*corev1.Pod{aPod("a", unready)}, nil},
		{"an unhealthy pod, others unhealthy", budgets(aBudget("web", 1, 0)), []*corev1.Pod{aPod("a", unready)}, []string{
			"Budget Deployment/web [a] PodDisruptionBudget/web since 11:00: the PodDisruptionBudget web allows no disruption now: 1 of 3 pods are healthy, and 2 must be",
		}},
		{"an unhealthy pod that may always leave", budgets(aBudget("web", 1, 0, alwaysAllow)), []*corev1.Pod{aPod("a", unready)}, nil},
		{"a pod that has not started", budgets(aBudget("web", 1, 0)), []*corev1.Pod{aPod("a", phase(corev1.PodPending))}, nil},
		{"budgets for others", budgets(aBudget("web", 1, 0, elsewhere), aBudget("none", 1, 0, nothing)), []*corev1.Pod{aPod("a")}, nil},
		{"two budgets", budgets(aBudget("web", 3, 1), aBudget("all", 3, 1, everything)), []*corev1.Pod{aPod("a")}, []string{
			"SeveralBudgets Deployment/web [a] PodDisruptionBudget/web: has 2 PodDisruptionBudgets, with which the API server refuses each eviction: web, all",
		}},
		{"pods that stay with the node", budgets(aBudget("web", 1, 0)), []*corev1.Pod{
			aPod("daemon", ownedBy("DaemonSet")), aPod("static", ownedBy("Node")), aPod("mirror", static), aPod("done", phase(corev1.PodSucceeded)), aPod("failed", phase(corev1.PodFailed)),
		}, nil},
		{"a bare pod", budgets(), []*corev1.Pod{aPod("a", alone)}, []string{"NoController Pod/a [a]: no controller creates it again on another node"}},
		{"a finalizer", budgets(), []*corev1.Pod{aPod("a", finalizer)}, []string{"Finalizer Deployment/web [a]: stays after its deletion until it has no finalizer: example.com/hold"}},
		{"the finalizer of the Job controller, on a pod of a Job", budgets(), []*corev1.Pod{aPod("a", ownedBy("Job"), tracked)}, nil},
		{"the finalizer of the Job controller, on another pod", budgets(), []*corev1.Pod{aPod("a", tracked)}, []string{"Finalizer Deployment/web [a]: stays after its deletion until it has no finalizer: batch.kubernetes.io/job-tracking"}},
		{"ten minutes", budgets(), []*corev1.Pod{aPod("a", grace(10*time.Minute))}, nil},
		{"two hours", budgets(), []*corev1.Pod{aPod("a", grace(2*time.Hour))}, []string{"LongGrace Deployment/web [a]: may take 2h0m0s to end: terminationGracePeriodSeconds is 7200"}},
		{"a pod that ends", budgets(aBudget("web", 1, 0)), []*corev1.Pod{aPod("a", deletedAt(noon.Add(time.Second)))}, nil},
		{"a pod that should have ended", budgets(), []*corev1.Pod{aPod("a", deletedAt(noon.Add(-time.Minute)))}, []string{
			"Terminating Deployment/web [a] since 11:59: is deleted, its grace period is over, and it is still there",
		}},
		{"a pod that should have ended, with a finalizer", budgets(), []*corev1.Pod{aPod("a", deletedAt(noon.Add(-time.Minute)), finalizer)}, []string{
			"Terminating Deployment/web [a] since 11:59: is deleted, its grace period is over, and it is still there: it has the finalizers example.com/hold",
		}},
		{"local data", budgets(), []*corev1.Pod{aPod("a", withVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}))}, []string{
			"LocalData Deployment/web [a]: data on the node are deleted with the pod: emptyDir data",
		}},
		{"a volume of this node", volume(local("n1"), node("n2", nil)), []*corev1.Pod{aPod("a", claim)}, []string{
			"LocalVolume Deployment/web [a] PersistentVolume/disk: no other node can use the PersistentVolume disk of its claim data, so that it waits for this node",
		}},
		{"a volume of two nodes", volume(local("n1", "n2"), node("n2", nil)), []*corev1.Pod{aPod("a", claim)}, nil},
		{"the other node is closed", volume(local("n1", "n2"), node("n2", cordoned)), []*corev1.Pod{aPod("a", claim)}, []string{
			"LocalVolume Deployment/web [a] PersistentVolume/disk: no other node can use the PersistentVolume disk of its claim data, so that it waits for this node",
		}},
		{"a claim without a volume", &World{}, []*corev1.Pod{aPod("a", claim)}, nil},
		{"several, in order", budgets(aBudget("web", 2, 0)), []*corev1.Pod{aPod("b", alone), aPod("a", finalizer)}, []string{
			"Budget Deployment/web [a] PodDisruptionBudget/web since 11:00: the PodDisruptionBudget web allows no disruption now: 2 of 3 pods are healthy, and 2 must be",
			"Budget Pod/b [b] PodDisruptionBudget/web since 11:00: the PodDisruptionBudget web allows no disruption now: 2 of 3 pods are healthy, and 2 must be",
			"Finalizer Deployment/web [a]: stays after its deletion until it has no finalizer: example.com/hold",
			"NoController Pod/b [b]: no controller creates it again on another node",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, b := range tt.world.Blockers(node("n1", nil), tt.pods, noon) {
				text := string(b.Reason) + " " + b.Workload + " [" + strings.Join(b.Pods, " ") + "]"
				if b.Object != "" {
					text += " " + b.Object
				}
				if b.Since != nil {
					text += " since " + b.Since.UTC().Format("15:04")
				}
				got = append(got, text+": "+b.Message)
				if b.Advice == "" || b.Namespace != "shop" || b.Count != len(b.Pods) {
					t.Errorf("%+v is not complete", b)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("blockers (-want +got):\n%s", d)
			}
		})
	}
}

// TestRefusals checks that rejected evictions of pods of the same workload are grouped, even though
// their messages contain different pod names.
func TestRefusals(t *testing.T) {
	got := Refusals([]Refusal{{aPod("b"), `pods "b" is held`}, {aPod("a"), `pods "a" is held`}, {aPod("c"), "timeout"}})
	want := []Blocker{
		{Reason: Refused, Namespace: "shop", Workload: "Deployment/web", Pods: []string{"a", "b"}, Count: 2, Message: `the API server refuses the eviction: pods POD is held`},
		{Reason: Refused, Namespace: "shop", Workload: "Deployment/web", Pods: []string{"c"}, Count: 1, Message: "the API server refuses the eviction: timeout"},
	}
	for i := range got {
		got[i].Advice = ""
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("refusals (-want +got):\n%s", d)
	}
}
