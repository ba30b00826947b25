// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// hasher hashes the labels in tests.
var hasher = NewHasher(maphash.MakeSeed())

// slimPod is a pod as stored in the manager's cache, without the fields that the cache keeps only
// as Facts.
type slimPod corev1.Pod

func (p *slimPod) Pod() *corev1.Pod { return (*corev1.Pod)(p) }

// cached returns a pod as in the manager's cache. Each pod has a separate kind.
func cached(pod *corev1.Pod) CachedPod {
	slim := &slimPod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, OwnerReferences: pod.OwnerReferences, Labels: map[string]string{}},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if hash, ok := pod.Labels["pod-template-hash"]; ok {
		slim.Labels["pod-template-hash"] = hash
	}
	return CachedPod{
		PodKind: PodKind{Namespace: unique.Make(pod.Namespace), Facts: hasher.Facts(pod), Ready: pods.IsConditionTrue(pod, corev1.PodReady), Shared: slim},
		Name:    pod.Name, Deleted: pod.DeletionTimestamp, Source: slim,
	}
}

func cachedBudgets(t rapid.TB, list ...policyv1.PodDisruptionBudget) (all []*CachedBudget) {
	t.Helper()
	for i := range list {
		b, err := CachedBudgetOf(&list[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// surveyed returns the tally of a pool with a single node.
func surveyed(t rapid.TB, list []policyv1.PodDisruptionBudget, running []*corev1.Pod, ignored ...Reason) *Tally {
	t.Helper()
	s, tally := NewSurvey(hasher, cachedBudgets(t, list...), History{}, noon), NewTally(ignored...)
	var all []CachedPod
	for _, pod := range running {
		all = append(all, cached(pod))
	}
	s.AddNode("n1", all, 0, []*Tally{tally})
	return tally
}

// someLabels draws labels from a few keys and values, including labels that all pods of a
// StatefulSet have.
func someLabels(t *rapid.T, what string) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"app", "tier", "a", "pod-template-hash"}), rapid.SampledFrom([]string{"", "web", "abc", "x"}), 0, 4).Draw(t, what)
}

func someSelector(t *rapid.T) *metav1.LabelSelector {
	if rapid.IntRange(0, 9).Draw(t, "has no selector") == 0 {
		return nil
	}
	s := &metav1.LabelSelector{}
	if rapid.Bool().Draw(t, "matches labels") {
		s.MatchLabels = someLabels(t, "match")
	}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		e := metav1.LabelSelectorRequirement{
			Key:      rapid.SampledFrom([]string{"app", "tier", "a"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}).Draw(t, "operator"),
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "web", "x"}), 1, 3, rapid.ID[string]).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func someBudget(t *rapid.T, i int) policyv1.PodDisruptionBudget {
	b := aBudget(fmt.Sprint("b", i), int32(rapid.IntRange(0, 3).Draw(t, "healthy")), int32(rapid.IntRange(0, 1).Draw(t, "allowed")))
	b.Namespace = rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace of the budget")
	b.Spec.Selector = someSelector(t)
	for what, change := range map[string]func(*policyv1.PodDisruptionBudget){"never": never, "always allow": alwaysAllow, "unseen": unseen} {
		if rapid.IntRange(0, 4).Draw(t, what) == 0 {
			change(b)
		}
	}
	return *b
}

func somePod(t *rapid.T, i int) *corev1.Pod {
	pod := aPod(fmt.Sprint("p", i))
	pod.Namespace = rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace")
	pod.Labels = someLabels(t, "labels")
	pod.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded}).Draw(t, "phase")
	pod.OwnerReferences[0].Kind = rapid.SampledFrom([]string{"ReplicaSet", "StatefulSet", "Job", "DaemonSet", "Node"}).Draw(t, "owner")
	for what, change := range map[string]func(*corev1.Pod){
		"alone": func(p *corev1.Pod) { p.OwnerReferences = nil }, "unready": unready,
		"deleted": deletedAt(noon.Add(-time.Second)), "being deleted": deletedAt(noon.Add(time.Second)),
		"mirror":  func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} },
		"held":    func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.com/hold") },
		"tracked": func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "batch.kubernetes.io/job-tracking") },
		"slow":    func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(601)) },
		"almost":  func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) },
		"scratch": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		},
	} {
		if rapid.IntRange(0, 5).Draw(t, what) == 0 {
			change(pod)
		}
	}
	return pod
}

// TestSurveyFindsTheSameBlockers checks that a survey of a cache finds the same blockers as
// World.Blockers finds from the complete pods and budgets.
func TestSurveyFindsTheSameBlockers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []policyv1.PodDisruptionBudget
		for i := range rapid.IntRange(0, 5).Draw(t, "budgets") {
			list = append(list, someBudget(t, i))
		}
		var running []*corev1.Pod
		for i := range rapid.IntRange(1, 4).Draw(t, "pods") {
			running = append(running, somePod(t, i))
		}
		want := map[Reason]int{}
		found := NewWorld(list, Volumes{}).Blockers(&corev1.Node{}, running, noon)
		for _, b := range found {
			want[b.Reason] += b.Count
		}
		got := surveyed(t, list, running)
		maps.DeleteFunc(got.Pods, func(_ Reason, n int) bool { return n == 0 })
		if diff := cmp.Diff(want, got.Pods); diff != "" {
			t.Fatalf("blockers by reason (-want +got):\n%s", diff)
		}
		if blocked := min(1, len(found)); got.Blocked != blocked || got.Uncertain > 0 {
			t.Fatalf("%d nodes are blocked, want %d; %d pods are uncertain", got.Blocked, blocked, got.Uncertain)
		}
	})
}

// TestEachReasonIsSurveyed checks that a survey covers all reasons except the reasons that need API
// requests or volumes.
func TestEachReasonIsSurveyed(t *testing.T) {
	for _, r := range Reasons {
		if slices.Contains(Surveyed, r.Reason) == (r.Reason == Refused || r.Reason == LocalVolume) {
			t.Errorf("%s: surveyed %t", r.Reason, slices.Contains(Surveyed, r.Reason))
		}
	}
}

// TestLastingBlockers checks which blockers count as lasting, and since when.
func TestLastingBlockers(t *testing.T) {
	long, short := noon.Add(-Patience), noon.Add(-Patience+time.Second)
	refusing := func(since time.Time) []policyv1.PodDisruptionBudget {
		b := aBudget("web", 2, 0)
		b.Status.Conditions[0].LastTransitionTime = metav1.NewTime(since)
		return []policyv1.PodDisruptionBudget{*b}
	}
	fresh := aBudget("new", 2, 0, unseen)
	fresh.Status.Conditions = nil
	unknown := []policyv1.PodDisruptionBudget{*fresh}
	for _, tt := range []struct {
		name         string
		budgets      []policyv1.PodDisruptionBudget
		pod          *corev1.Pod
		withoutPlace int
		history      History
		lasts        bool
	}{
		{"a budget for long", refusing(long), aPod("a"), 0, History{}, true},
		{"a budget for a moment", refusing(short), aPod("a"), 0, nil, false},
		{"a budget after the clock was set back", refusing(noon.Add(time.Hour)), aPod("a"), 0, nil, false},
		{"a budget that has not been seen, first survey", unknown, aPod("a"), 0, nil, true},
		{"a budget that has not been seen, new", unknown, aPod("a"), 0, History{}, false},
		{"a budget that has not been seen, for a moment", unknown, aPod("a"), 0, History{"Budget/shop/PodDisruptionBudget/new": short}, false},
		{"a budget that has not been seen, for long", unknown, aPod("a"), 0, History{"Budget/shop/PodDisruptionBudget/new": long}, true},
		{"a budget that has not been seen, in the future", unknown, aPod("a"), 0, History{"Budget/shop/PodDisruptionBudget/new": noon.Add(time.Hour)}, false},
		{"two budgets", append(refusing(short), unknown...), aPod("a"), 0, History{}, true},
		{"deleted for long", nil, aPod("a", deletedAt(long)), 0, nil, true},
		{"deleted a moment ago", nil, aPod("a", deletedAt(short)), 0, nil, false},
		{"without a controller", nil, aPod("a", func(p *corev1.Pod) { p.OwnerReferences = nil }), 0, History{}, true},
		{"without place, first survey", nil, aPod("a"), 1, nil, true},
		{"without place, new", nil, aPod("a"), 1, History{}, false},
		{"without place, for a moment", nil, aPod("a"), 1, History{"NoPlace/n1": short}, false},
		{"without place, for long", nil, aPod("a"), 1, History{"NoPlace/n1": long}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, tally := NewSurvey(hasher, cachedBudgets(t, tt.budgets...), tt.history, noon), NewTally()
			s.AddNode("n1", []CachedPod{cached(tt.pod)}, tt.withoutPlace, []*Tally{tally})
			if tally.Blocked != 1 || tally.Lasting == 1 != tt.lasts {
				t.Errorf("%d nodes are blocked, %d for long", tally.Blocked, tally.Lasting)
			}
			if worst, _ := tally.Worst(); worst != nil != tt.lasts {
				t.Errorf("the worst is %+v", worst)
			}
			for key, at := range s.History() {
				if at.After(noon) || !tt.history[key].IsZero() && !tt.history[key].After(noon) && at != tt.history[key] {
					t.Errorf("%s is remembered as of %s", key, at)
				}
			}
		})
	}
}

// TestWorst checks the order of the reported blockers: first by number of nodes, then by reason.
func TestWorst(t *testing.T) {
	alone := func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, nil }
	of := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": name, "pod-template-hash": "abc"}
			p.OwnerReferences[0].Name = name + "-abc"
		}
	}
	b := *aBudget("web", 2, 0, never)
	nodes := map[string][]*corev1.Pod{
		"n2": {aPod("a"), aPod("b"), aPod("c", alone), aPod("other", of("other"), func(p *corev1.Pod) { p.Finalizers = []string{"x/y"} })},
		"n1": {aPod("d"), aPod("e", alone), aPod("f", alone)},
		"n3": {aPod("g", of("free"))},
	}
	survey := func(ignored ...Reason) *Tally {
		s, t1 := NewSurvey(hasher, cachedBudgets(t, b), History{}, noon), NewTally(ignored...)
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(nodes))) {
			var running []CachedPod
			for _, pod := range nodes[name] {
				running = append(running, cached(pod))
			}
			s.AddNode(name, running, 0, []*Tally{t1})
		}
		return t1
	}
	for _, tt := range []struct {
		ignored         []Reason
		blocked, others int
		want            Group
	}{
		{nil, 2, 2, Group{Reason: Budget, Namespace: "shop", Workload: "Deployment/web", Object: "PodDisruptionBudget/web", Pods: 3, Nodes: 2, Node: "n1", Since: &metav1.Time{Time: noon.Add(-time.Hour)}}},
		{[]Reason{Budget}, 2, 1, Group{Reason: NoController, Namespace: "shop", Pods: 3, Nodes: 2, Node: "n1"}},
		{[]Reason{Budget, NoController}, 1, 0, Group{Reason: Finalizer, Namespace: "shop", Workload: "Deployment/other", Pods: 1, Nodes: 1, Node: "n2"}},
	} {
		got := survey(tt.ignored...)
		worst, others := got.Worst()
		if diff := cmp.Diff(&tt.want, worst, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "last" }, cmp.Ignore()), cmp.AllowUnexported(Group{})); diff != "" {
			t.Errorf("ignoring %s (-want +got):\n%s", tt.ignored, diff)
		}
		if got.Blocked != tt.blocked || others != tt.others {
			t.Errorf("ignoring %s: %d nodes are blocked, %d other causes", tt.ignored, got.Blocked, others)
		}
		for _, reason := range tt.ignored {
			if _, counted := got.Pods[reason]; counted {
				t.Errorf("%s is counted", reason)
			}
		}
	}
}
