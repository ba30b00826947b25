// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// refusal returns the blocker of a pod whose eviction the PodDisruptionBudgets that select it
// currently do not allow, or nil if they allow it. It follows the rules of the Eviction API.
func refusal(of []*policyv1.PodDisruptionBudget, pod *corev1.Pod) *Blocker {
	if pod.Status.Phase == corev1.PodPending {
		return nil // the API server evicts pending pods regardless of PodDisruptionBudgets
	}
	switch len(of) {
	case 0:
		return nil
	case 1:
		return refusalBy(of[0], pods.IsConditionTrue(pod, corev1.PodReady))
	}
	var names []string
	for _, budget := range of {
		names = append(names, budget.Name)
	}
	return &Blocker{
		Reason: SeveralBudgets, Object: "PodDisruptionBudget/" + names[0],
		Message: fmt.Sprintf("has %d PodDisruptionBudgets, with which the API server refuses each eviction: %s", len(of), strings.Join(names, ", ")),
		Advice:  "leave one of them, or change their selectors",
	}
}

// refusalBy returns the blocker of a pod that a single PodDisruptionBudget selects, or nil if the
// PodDisruptionBudget allows the eviction. isReady is true if the pod's condition Ready is True.
func refusalBy(budget *policyv1.PodDisruptionBudget, isReady bool) *Blocker {
	s := &budget.Status
	if !isReady {
		policy := budget.Spec.UnhealthyPodEvictionPolicy
		if policy != nil && *policy == policyv1.AlwaysAllow || s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0 {
			return nil
		}
	}
	b := &Blocker{Reason: Budget, Object: "PodDisruptionBudget/" + budget.Name}
	if c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Status == metav1.ConditionFalse {
		b.Since = &c.LastTransitionTime
	}
	switch {
	case s.ObservedGeneration < budget.Generation:
		b.Message = "the disruption controller has not seen the PodDisruptionBudget " + budget.Name + " as it is now"
		b.Advice = "see whether kube-controller-manager works"
	case s.DisruptionsAllowed > 0:
		return nil
	case s.DesiredHealthy >= s.ExpectedPods:
		b.Message = fmt.Sprintf("the PodDisruptionBudget %s never allows a disruption: %d of %d pods must be healthy", budget.Name, s.DesiredHealthy, s.ExpectedPods)
		b.Advice = "restart the workload onto other nodes, add a replica, or let the budget allow a disruption"
	default:
		b.Message = fmt.Sprintf("the PodDisruptionBudget %s allows no disruption now: %d of %d pods are healthy, and %d must be", budget.Name, s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy)
		b.Advice = "find out why its other pods are not healthy"
	}
	return b
}
