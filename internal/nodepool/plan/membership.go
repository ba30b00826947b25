// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Selector returns the label selector of the pool's member nodes: spec.selector or, if it is not
// set, a selector for the label node-role.kubernetes.io/<name> with any value. An error means that
// the pool was stored under an older schema, since the current schema rejects invalid selectors.
func Selector(pool *tidekeeperv1.NodePool) (labels.Selector, error) {
	if pool.Spec.Selector == nil {
		role, err := labels.NewRequirement(tidekeeperv1.RoleLabelPrefix+pool.Name, selection.Exists, nil)
		if err != nil {
			return nil, fmt.Errorf("the name %q cannot be part of a role label: %w", pool.Name, err)
		}
		return labels.NewSelector().Add(*role), nil
	}
	selector := &metav1.LabelSelector{MatchLabels: plainMap(pool.Spec.Selector.MatchLabels)}
	for _, e := range pool.Spec.Selector.MatchExpressions {
		values := make([]string, len(e.Values))
		for i, v := range e.Values {
			values[i] = string(v)
		}
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: values})
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	if compiled.Empty() {
		return nil, fmt.Errorf("spec.selector is empty and would take every node")
	}
	return compiled, nil
}

// ByPrecedence orders pools by precedence: if two pools specify the same key, the older pool wins.
// Pools created at the same time are ordered by name.
func ByPrecedence(a, b *tidekeeperv1.NodePool) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// plainMap converts the values of a map to plain strings.
func plainMap[V ~string](in map[string]V) map[string]string {
	return maps.Collect(func(yield func(string, string) bool) {
		for k, v := range in {
			if !yield(k, string(v)) {
				return
			}
		}
	})
}
