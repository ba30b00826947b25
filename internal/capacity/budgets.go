// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/budgets"
)

// Budgets holds the PodDisruptionBudgets of a cluster, as the scheduler evaluates them: it prefers
// not to evict pods whose eviction they do not allow.
type Budgets struct{ index budgets.Index }

// NewBudgets returns the Budgets of the given PodDisruptionBudgets. As in the scheduler, a
// PodDisruptionBudget with an invalid, missing or empty selector selects no pod.
func NewBudgets(list []policyv1.PodDisruptionBudget) *Budgets {
	return &Budgets{budgets.NewIndex(slices.DeleteFunc(slices.Clone(list), func(of policyv1.PodDisruptionBudget) bool {
		selector := of.Spec.Selector
		return selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
	}))}
}

// violatingFirst returns the pods, those first whose eviction would violate a PodDisruptionBudget.
// Both parts keep the order of the pods. If b is nil, no eviction violates a budget.
func (b *Budgets) violatingFirst(list []pod) []victim {
	var violating, others []victim
	left := map[*policyv1.PodDisruptionBudget]int32{}
	for _, p := range list {
		if name := b.violated(p.object, left); name != "" {
			violating = append(violating, victim{p, name})
		} else {
			others = append(others, victim{pod: p})
		}
	}
	return slices.Concat(violating, others)
}

// violated returns the name of the first PodDisruptionBudget that does not allow the eviction of a
// pod after earlier evictions. It returns "" if all allow it. left holds the number of evictions
// that each budget still allows.
func (b *Budgets) violated(object *corev1.Pod, left map[*policyv1.PodDisruptionBudget]int32) string {
	if b == nil || len(object.Labels) == 0 {
		return ""
	}
	for _, of := range b.index.Of(object) {
		if _, counted := of.Status.DisruptedPods[object.Name]; counted {
			continue // The API server has already subtracted this eviction.
		}
		if _, known := left[of]; !known {
			left[of] = of.Status.DisruptionsAllowed
		}
		left[of]--
		if left[of] < 0 {
			return of.Name
		}
	}
	return ""
}
