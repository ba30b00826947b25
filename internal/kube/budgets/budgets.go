// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budgets finds the PodDisruptionBudgets that select a pod.
package budgets

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Index maps each namespace to its PodDisruptionBudgets.
type Index map[string][]selecting

// selecting is a PodDisruptionBudget together with its parsed selector.
type selecting struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// NewIndex groups PodDisruptionBudgets by namespace. PodDisruptionBudgets with an invalid selector
// are left out. An empty selector selects all pods of the namespace.
func NewIndex(list []policyv1.PodDisruptionBudget) Index {
	all := Index{}
	for i := range list {
		budget := &list[i]
		if selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err == nil {
			all[budget.Namespace] = append(all[budget.Namespace], selecting{budget, selector})
		}
	}
	return all
}

// Of returns the PodDisruptionBudgets that select a pod.
func (x Index) Of(pod *corev1.Pod) (of []*policyv1.PodDisruptionBudget) {
	for _, budget := range x[pod.Namespace] {
		if budget.selector.Matches(labels.Set(pod.Labels)) {
			of = append(of, budget.PodDisruptionBudget)
		}
	}
	return of
}
