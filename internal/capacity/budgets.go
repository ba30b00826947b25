// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budgets holds the PodDisruptionBudgets of a cluster, as the scheduler evaluates them: it prefers
// not to evict pods whose eviction they do not allow.
type Budgets struct{ byNamespace map[string][]budget }

// budget is a PodDisruptionBudget with its parsed selector.
type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// NewBudgets returns the Budgets of the given PodDisruptionBudgets. As in the scheduler, a
// PodDisruptionBudget with an invalid, missing or empty selector selects no pod.
func NewBudgets(list []policyv1.PodDisruptionBudget) *Budgets {
	b := &Budgets{byNamespace: map[string][]budget{}}
	for i := range list {
		selector, err := metav1.LabelSelectorAsSelector(list[i].Spec.Selector)
		if err == nil && !selector.Empty() {
			b.byNamespace[list[i].Namespace] = append(b.byNamespace[list[i].Namespace], budget{&list[i], selector})
		}
	}
	return b
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
	for _, of := range b.byNamespace[object.Namespace] {
		if !of.selector.Matches(labels.Set(object.Labels)) {
			continue
		}
		if _, counted := of.Status.DisruptedPods[object.Name]; counted {
			continue // The API server has already subtracted this eviction.
		}
		if _, known := left[of.PodDisruptionBudget]; !known {
			left[of.PodDisruptionBudget] = of.Status.DisruptionsAllowed
		}
		left[of.PodDisruptionBudget]--
		if left[of.PodDisruptionBudget] < 0 {
			return of.Name
		}
	}
	return ""
}
