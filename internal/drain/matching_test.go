// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selects gives a budget a selector.
func selects(s metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &s }
}

func labeled(labels map[string]string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = labels }
}

// requires returns a selector with a single requirement.
func requires(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

// TestBeyondBoundsIsUnknown checks that a pod counts as uncertain, and not as leaving, if it is
// unknown which budgets select it, and that blockers that do not depend on unknown budgets are
// still found.
func TestBeyondBoundsIsUnknown(t *testing.T) {
	many := map[string]string{}
	for i := range MostLabels + 1 {
		many[fmt.Sprint("l", i)] = ""
	}
	few := func(count int) map[string]string {
		labels := map[string]string{}
		for i := range count {
			labels[fmt.Sprint("l", i)] = ""
		}
		labels["app"] = "web"
		return labels
	}
	allows := func(changes ...func(*policyv1.PodDisruptionBudget)) []policyv1.PodDisruptionBudget {
		return []policyv1.PodDisruptionBudget{*aBudget("b", 3, 1, changes...)}
	}
	others := func(count int, s metav1.LabelSelector) (list []policyv1.PodDisruptionBudget) {
		for i := range count {
			list = append(list, *aBudget(fmt.Sprint("b", i), 3, 1, selects(s)))
		}
		return list
	}
	ofStatefulSet := labeled(map[string]string{"app": "web", "statefulset.kubernetes.io/pod-name": "a", "apps.kubernetes.io/pod-index": "0"})
	long := strings.Repeat("v", 63)
	var values []string
	for i := range 40 {
		values = append(values, fmt.Sprint(i)+long[:60])
	}
	for _, tt := range []struct {
		name      string
		budgets   []policyv1.PodDisruptionBudget
		pod       *corev1.Pod
		uncertain bool
		reason    Reason
	}{
		{"as many labels as are kept", allows(), aPod("a", labeled(few(MostLabels-1))), false, ""},
		{"too many labels", allows(), aPod("a", labeled(many)), true, ""},
		{"too many labels, no budgets", nil, aPod("a", labeled(many)), false, ""},
		{"too many labels, budgets elsewhere", allows(elsewhere), aPod("a", labeled(many)), false, ""},
		{"too many labels, but pending", allows(), aPod("a", labeled(many), phase(corev1.PodPending)), false, ""},
		{"too many labels, and of a DaemonSet", allows(), aPod("a", labeled(many), ownedBy("DaemonSet")), false, ""},
		{"too long a selector", allows(selects(requires("x", metav1.LabelSelectorOpIn, values...))), aPod("a"), true, ""},
		{"too long a selector, and a budget that refuses", append(allows(selects(requires("x", metav1.LabelSelectorOpIn, values...))), *aBudget("web", 2, 0)), aPod("a"), false, Budget},
		{"too many requirements", allows(selects(requires("x", metav1.LabelSelectorOpIn, strings.Split(strings.Repeat("a,", 64)+"b", ",")...))), aPod("a"), true, ""},
		{"selected by its name", allows(selects(metav1.LabelSelector{MatchLabels: map[string]string{"statefulset.kubernetes.io/pod-name": "a"}})), aPod("a", ofStatefulSet), true, ""},
		{"selected by its name and a label that it lacks", allows(selects(metav1.LabelSelector{MatchLabels: map[string]string{"statefulset.kubernetes.io/pod-name": "a", "x": "y"}})), aPod("a", ofStatefulSet), false, ""},
		{"a pod of a StatefulSet, selected by another label", []policyv1.PodDisruptionBudget{*aBudget("web", 2, 0)}, aPod("a", ofStatefulSet), false, Budget},
		{"many budgets that select others by a label", others(10_000, metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}), aPod("a"), false, ""},
		{"many budgets that select others by a key", others(10_000, requires("x", metav1.LabelSelectorOpExists)), aPod("a"), false, ""},
		{"many budgets of the same label, but with another label of their own", func() (list []policyv1.PodDisruptionBudget) {
			for i := range 1000 {
				list = append(list, *aBudget(fmt.Sprint("b", i), 3, 1, selects(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "z": fmt.Sprint(i)}})))
			}
			return list
		}(), aPod("a"), false, ""},
		{"as many budgets as are compared", others(MostCompared, requires("app", metav1.LabelSelectorOpDoesNotExist)), aPod("a"), false, ""},
		{"too many budgets that require no label", others(MostCompared+1, requires("app", metav1.LabelSelectorOpDoesNotExist)), aPod("a"), true, ""},
		{"too many budgets that require the same label", others(MostCompared+1, metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: requires("app", metav1.LabelSelectorOpNotIn, "web").MatchExpressions}), aPod("a"), true, ""},
		{"many budgets that select all", others(10_000, metav1.LabelSelector{}), aPod("a"), false, SeveralBudgets},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := surveyed(t, tt.budgets, []*corev1.Pod{tt.pod})
			if got.Uncertain == 1 != tt.uncertain || tt.uncertain && got.UncertainIn != "shop" {
				t.Errorf("%d pods are uncertain, in %q", got.Uncertain, got.UncertainIn)
			}
			for reason, count := range got.Pods {
				if count > 0 != (reason == tt.reason) {
					t.Errorf("%d pods are blocked by %s", count, reason)
				}
			}
			if ignoring := surveyed(t, tt.budgets, []*corev1.Pod{tt.pod}, Budget, SeveralBudgets); ignoring.Uncertain+ignoring.Blocked > 0 {
				t.Errorf("a pool that ignores budgets has %+v", ignoring)
			}
		})
	}
	s, tally := NewSurvey(hasher, nil, nil, noon), NewTally()
	nothing := cached(aPod("a"))
	nothing.Facts = Facts{}
	if s.AddNode("n1", []CachedPod{nothing}, 0, []*Tally{tally}); tally.Uncertain != 1 {
		t.Error("a pod without facts counts as known")
	}
}

// TestFactsAreShared checks that pods with equal fields can share their facts, that a difference in
// any field results in different facts, and that labels that differ between the pods of a workload
// are ignored.
func TestFactsAreShared(t *testing.T) {
	plain := hasher.Facts(aPod("a"))
	for what, change := range map[string]func(*corev1.Pod){
		"name":        func(p *corev1.Pod) { p.Name = "b" },
		"owner":       ownedBy("Job"),
		"readiness":   unready,
		"short grace": func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) },
		"pod name":    func(p *corev1.Pod) { p.Labels["statefulset.kubernetes.io/pod-name"] = "a" },
		"index":       func(p *corev1.Pod) { p.Labels["batch.kubernetes.io/job-completion-index"] = "7" },
		"annotation":  func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} },
		"volume":      func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "a"}} },
	} {
		if pod := aPod("a", change); !hasher.Facts(pod).Equal(plain) {
			t.Errorf("the facts depend on the %s", what)
		}
	}
	for what, change := range map[string]func(*corev1.Pod){
		"another value": func(p *corev1.Pod) { p.Labels["app"] = "x" },
		"another key":   labeled(map[string]string{"ap": "pweb", "pod-template-hash": "abc"}),
		"a label":       func(p *corev1.Pod) { p.Labels["x"] = "" },
		"a finalizer":   func(p *corev1.Pod) { p.Finalizers = []string{"x/y"} },
		"grace":         func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1<<63 - 1)) },
		"mirror":        func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
		"emptyDir": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		},
	} {
		if pod := aPod("a", change); hasher.Facts(pod).Equal(plain) {
			t.Errorf("the facts do not depend on %s", what)
		}
	}
	b := hasher.Builder()
	for range 2 {
		b.Reset()
		b.Label([]byte("pod-template-hash"), []byte("abc"))
		b.Label([]byte("app"), []byte("web"))
		if got, ok := b.Facts(Facts{}, plain); !ok || got != plain {
			t.Errorf("got other facts, %t, than the known", ok)
		}
	}
	if b.Label([]byte("app"), []byte("other")); len(b.labels) == 3 {
		if _, ok := b.Facts(); ok {
			t.Error("a key with two values is understood")
		}
	}
	if (Facts{}).Equal(plain) || !(Facts{}).Equal(Facts{}) {
		t.Error("unknown facts equal known facts")
	}
}

// TestCachedBudgetIsBounded checks that a cached budget is small for a PodDisruptionBudget of any
// size, and that it restores all fields that a survey depends on.
func TestCachedBudgetIsBounded(t *testing.T) {
	b := aBudget("web", 2, 0, alwaysAllow, unseen)
	b.Annotations = map[string]string{"a": strings.Repeat("x", 200_000)}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := range 5000 {
		b.Spec.Selector.MatchLabels[fmt.Sprint("l", i)] = ""
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: fmt.Sprint(i), Message: "m"})
	}
	got := cachedBudgets(t, *b)[0]
	if got.selector != "" || !got.tooLarge {
		t.Errorf("it keeps a selector of %d bytes", len(got.selector))
	}
	if again, err := CachedBudgetOf(got); err != nil || again != got {
		t.Errorf("the budget of a cached budget is %v, %v", again, err)
	}
	if _, err := CachedBudgetOf(aPod("a")); err == nil {
		t.Error("a pod is a budget")
	}
	largest := aBudget("web", 2, 0, selects(requires("x", metav1.LabelSelectorOpIn, slices.Repeat([]string{"0123456789"}, mostRequirements-1)...)))
	if got := cachedBudgets(t, *largest)[0]; got.tooLarge || len(got.selector) > mostSelector {
		t.Errorf("a selector of %d bytes: too large %t", largest.Spec.Selector.Size(), got.tooLarge)
	}
	b.Spec, b.Status.Conditions = policyv1.PodDisruptionBudgetSpec{Selector: b.Spec.Selector, UnhealthyPodEvictionPolicy: b.Spec.UnhealthyPodEvictionPolicy}, b.Status.Conditions[:1]
	for _, isReady := range []bool{true, false} {
		if want, is := refusalBy(b, isReady), got.refusal(isReady); !equality.Semantic.DeepEqual(want, is) {
			t.Errorf("ready %t: the cached budget refuses with %+v, the budget with %+v", isReady, is, want)
		}
	}
}
