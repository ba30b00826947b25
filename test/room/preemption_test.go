// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/test/setting"
)

// preemptionWorld is a full cluster whose pods have priorities, and a pod that may preempt some of
// them.
type preemptionWorld struct {
	*world
	budgets []policyv1.PodDisruptionBudget
}

// newPreemptionWorld returns a random cluster. Most nodes are full.
func newPreemptionWorld(seed uint64) *preemptionWorld {
	w := &preemptionWorld{world: newPlainWorld(seed)}
	w.Rand = rand.New(rand.NewPCG(seed, 3))
	for _, n := range w.nodes {
		for k := range w.IntN(8) {
			pod := w.pod(fmt.Sprintf("%s-filler-%d", n.Name, k), oneOf(w.world, "web", "db", "cache"))
			pod.Spec.NodeName = n.Name
			w.constrain(pod, 10)
			w.pods = append(w.pods, pod)
		}
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moments := oneOf(w.world, 2, 1000)
	for _, pod := range w.pods {
		pod.DeletionTimestamp, pod.Finalizers = nil, nil // The scheduler's spread constraints count such pods only when they are removed.
		pod.Spec.Priority = new(oneOf[int32](w.world, -10, 0, 0, 0, 100, 1000))
		pod.Status.StartTime = &metav1.Time{Time: start.Add(time.Duration(w.IntN(moments)) * time.Second)}
	}
	if w.chance(20) {
		for range 1 + w.IntN(2) {
			pod := w.pod(fmt.Sprint("nominated-", len(w.pods)), "cache")
			pod.Spec.Priority, pod.Status.NominatedNodeName = new(oneOf[int32](w.world, 0, 500, 1000)), oneOf(w.world, w.nodes...).Name
			w.pods = append(w.pods, pod)
		}
	}
	for _, app := range []string{"web", "db", "cache"} {
		if w.chance(40) {
			w.budgets = append(w.budgets, policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
				Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(w.IntN(3))},
			})
		}
	}
	w.copy.UID, w.copy.Spec.Priority = types.UID("copy"), new(oneOf[int32](w.world, 0, 500, 500, 500, 2000))
	w.copy.Spec.Containers[0].Resources.Requests = list(oneOf(w.world, "500m", "1500m", "3"), oneOf(w.world, "1Gi", "3Gi", "5Gi"), "")
	return w
}

// TestPreemptionEqualsScheduler compares the node and the victims that capacity names with the
// choice of the scheduler's plugin in random worlds.
func TestPreemptionEqualsScheduler(t *testing.T) {
	o, err := newOracle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, cases := setting.Number(t, "SEED", 1, 0), setting.Number(t, "CASES", 2000, 1)
	counts := map[string]int{}
	for i := range cases {
		seed := uint64(first + i)
		w := newPreemptionWorld(seed)
		got, err := o.preempt(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		says := capacity.Preempt(capacity.New(w.nodes, w.pods), w.copy, nil, capacity.NewBudgets(w.budgets))
		result, right := w.judge(got, says)
		counts[result]++
		if right {
			continue
		}
		t.Errorf("SEED=%d: %s: %+v, and the scheduler does %+v", seed, result, says, got)
		if os.Getenv("CASES") == "1" {
			for _, object := range []any{w.nodes, w.pods, w.budgets, w.copy, says} {
				text, _ := yaml.Marshal(object)
				t.Logf("%s", text)
			}
		}
	}
	t.Logf("%d random clusters from SEED=%d: %v", cases, first, counts)
	if cases >= 2000 && (counts["exact"] < cases/10 || counts["one of several"] == 0) {
		t.Errorf("too few preemptions are compared: %v", counts)
	}
}

// judge compares an answer with the choice of the scheduler. It returns a word for the result, and
// whether the answer is right.
func (w *preemptionWorld) judge(got preempted, says *capacity.Preemption) (result string, right bool) {
	switch {
	case says == nil && got.fits:
		return "fits", true
	case says == nil && got.node == "":
		return "no help", true
	case says == nil || got.node == "":
		return "preempts or not", false
	}
	var victims []string
	for _, v := range says.Victims {
		victims = append(victims, v.Name)
	}
	switch {
	case slices.Contains(says.Uncertain, "pods of equal priority and age"):
		return "equal pods", len(got.candidates[says.Node]) > 0
	case len(says.Uncertain) > 0:
		return fmt.Sprint(says.Uncertain), len(got.candidates[says.Node]) > 0
	}
	result = "exact"
	if len(says.EqualNodes) > 0 {
		result = "one of several"
	}
	slices.Sort(victims)
	want := slices.Sorted(slices.Values(got.candidates[says.Node]))
	return result, (says.Node == got.node || slices.Contains(says.EqualNodes, got.node)) && slices.Equal(victims, want) && *says.BudgetViolations == got.violations
}
