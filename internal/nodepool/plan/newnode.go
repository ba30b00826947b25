// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// ErrNotSelected is returned for a template that describes a node which the pool does not select.
var ErrNotSelected = errors.New("spec.nodeTemplate lacks labels that spec.selector requires")

// NewNode returns a ready node as described by spec.nodeTemplate of the pool. The node also has the
// labels and taints of the pool's spec, and the role label or the matchLabels by which the pool
// selects its nodes. Labels that matchExpressions require must be in the template. NewNode returns
// nil without an error if the pool has no template.
func NewNode(pool *tidekeeperv1.NodePool, name string) (*corev1.Node, error) {
	t := pool.Spec.NodeTemplate
	if t == nil {
		return nil, nil
	}
	selector, err := Selector(pool)
	if err != nil {
		return nil, err
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: plainMap(t.Labels)}}
	if pool.Spec.Selector == nil {
		n.Labels[tidekeeperv1.RoleLabelPrefix+pool.Name] = ""
	} else {
		maps.Copy(n.Labels, plainMap(pool.Spec.Selector.MatchLabels))
	}
	if !selector.Matches(labels.Set(n.Labels)) {
		return nil, ErrNotSelected
	}
	maps.Copy(n.Labels, plainMap(pool.Spec.Labels))
	n.Labels[corev1.LabelHostname] = name
	for _, taint := range t.Taints {
		if slices.ContainsFunc(pool.Spec.Taints, func(own tidekeeperv1.Taint) bool { return own.Key == taint.Key && own.Effect == taint.Effect }) {
			continue // The pool sets its own value.
		}
		n.Spec.Taints = append(n.Spec.Taints, onNode(taint))
	}
	for _, taint := range pool.Spec.Taints {
		n.Spec.Taints = append(n.Spec.Taints, onNode(taint))
	}
	n.Status.Allocatable = corev1.ResourceList(maps.Clone(t.Allocatable))
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n, nil
}
