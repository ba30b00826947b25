// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// poolOf returns the name of the pool that the node is a member of, or "". Of
// several it is the oldest, which is the one that has its way with the node.
func poolOf(node *corev1.Node, pools []tidekeeperv1.NodePool) string {
	var oldest *tidekeeperv1.NodePool
	for i := range pools {
		p := &pools[i]
		if selects(p, node) && (oldest == nil || cmp.Or(
			p.CreationTimestamp.Compare(oldest.CreationTimestamp.Time), cmp.Compare(p.Name, oldest.Name)) < 0) {
			oldest = p
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.Name
}

// selects tells whether the node is a member of the pool: by its selector, or
// without one by the role label of the pool's name.
func selects(pool *tidekeeperv1.NodePool, node *corev1.Node) bool {
	if pool.Spec.Selector == nil {
		_, ok := node.Labels[tidekeeperv1.RoleLabelPrefix+pool.Name]
		return ok
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range pool.Spec.Selector.MatchLabels {
		selector.MatchLabels[key] = string(value)
	}
	for _, e := range pool.Spec.Selector.MatchExpressions {
		values := make([]string, len(e.Values))
		for i, v := range e.Values {
			values[i] = string(v)
		}
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: values})
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !compiled.Empty() && compiled.Matches(labels.Set(node.Labels))
}
