// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"
	"unique"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CachedBudget replaces a PodDisruptionBudget in a cache. It takes a few hundred bytes, because it
// holds only the fields that determine whether the budget allows evictions.
type CachedBudget struct {
	Namespace, Name string
	version         string
	// selector is the encoded label selector. It is empty if the budget has no selector (selecting
	// is false) or if the selector exceeds mostSelector or mostRequirements (tooLarge is true).
	// alwaysAllow is true for the unhealthy pod eviction policy AlwaysAllow. outdated is true if
	// the disruption controller has not observed the budget's latest generation.
	selector              string
	selecting, tooLarge   bool
	alwaysAllow, outdated bool
	// refusing is true if the budget's condition DisruptionAllowed is False. since is the time of
	// the condition's last change, in Unix seconds.
	refusing                            bool
	since                               int64
	allowed, healthy, desired, expected int32
}

// Limits on the size of a cached label selector. They are needed because users may create selectors
// of any size. A PodDisruptionBudget with a larger selector is not evaluated.
const (
	// mostSelector is the maximum size of a selector in bytes.
	mostSelector = 2048
	// mostRequirements is the maximum number of requirements in a selector plus the number of their
	// values.
	mostRequirements = 64
)

// CachedBudgetOf returns the CachedBudget of a PodDisruptionBudget. If `in` is a CachedBudget, it
// is returned unchanged. Any other object causes an error.
func CachedBudgetOf(in any) (*CachedBudget, error) {
	if cached, ok := in.(*CachedBudget); ok {
		return cached, nil
	}
	budget, ok := in.(*policyv1.PodDisruptionBudget)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of PodDisruptionBudgets", in)
	}
	policy, status := budget.Spec.UnhealthyPodEvictionPolicy, &budget.Status
	b := &CachedBudget{
		// The strings are copied so that the original object can be garbage-collected.
		Namespace: unique.Make(budget.Namespace).Value(), Name: strings.Clone(budget.Name), version: strings.Clone(budget.ResourceVersion),
		selecting:   budget.Spec.Selector != nil,
		alwaysAllow: policy != nil && *policy == policyv1.AlwaysAllow,
		outdated:    status.ObservedGeneration < budget.Generation,
		allowed:     status.DisruptionsAllowed, healthy: status.CurrentHealthy, desired: status.DesiredHealthy, expected: status.ExpectedPods,
	}
	if c := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Status == metav1.ConditionFalse {
		b.refusing, b.since = true, c.LastTransitionTime.Unix()
	}
	if s := budget.Spec.Selector; s != nil {
		if b.tooLarge = s.Size() > mostSelector || requirementsOf(s) > mostRequirements; !b.tooLarge {
			raw, err := s.Marshal()
			if err != nil {
				return nil, fmt.Errorf("the selector of the PodDisruptionBudget %s/%s: %w", budget.Namespace, budget.Name, err)
			}
			b.selector = string(raw)
		}
	}
	return b, nil
}

// requirementsOf returns the number of requirements in a selector plus the number of their values.
func requirementsOf(s *metav1.LabelSelector) int {
	n := len(s.MatchLabels) + len(s.MatchExpressions)
	for i := range s.MatchExpressions {
		n += len(s.MatchExpressions[i].Values)
	}
	return n
}

// GetObjectMeta returns the metadata that an informer requires of an object in its cache.
func (b *CachedBudget) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, ResourceVersion: b.version}
}

// budget returns a PodDisruptionBudget with the cached fields. Its selector is not set.
func (b *CachedBudget) budget() *policyv1.PodDisruptionBudget {
	p := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: b.allowed, CurrentHealthy: b.healthy, DesiredHealthy: b.desired, ExpectedPods: b.expected},
	}
	if b.outdated {
		p.Generation = 1
	}
	if b.alwaysAllow {
		p.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	if b.refusing {
		p.Status.Conditions = []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Unix(b.since, 0),
		}}
	}
	return p
}

// refusal returns the blocker of a pod that this budget alone selects, or nil if the budget allows
// the eviction.
func (b *CachedBudget) refusal(isReady bool) *Blocker { return refusalBy(b.budget(), isReady) }
