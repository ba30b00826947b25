// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Label is the ReplicaSet label whose value is the number of the ReplicaSet's pods.
const Label = "pod-count"

// count returns the number of active pods in list that the ReplicaSet controls.
func count(rs *appsv1.ReplicaSet, list []corev1.Pod) int {
	n := 0
	for i := range list {
		owner := metav1.GetControllerOfNoCopy(&list[i])
		if owner != nil && owner.UID == rs.UID && pods.IsActive(&list[i]) {
			n++
		}
	}
	return n
}

// isExempt reports whether the label pod-count must not be set on the ReplicaSet.
func isExempt(rs *appsv1.ReplicaSet) bool {
	if rs.DeletionTimestamp != nil {
		return true
	}
	// The Deployment finds its ReplicaSets by a selector that contains the label pod-count. If this
	// controller changed the label, the Deployment would release this ReplicaSet and create
	// another, endlessly.
	return SlimSelector(rs.Spec.Selector) != nil
}

// SlimSelector reduces a ReplicaSet's selector to the requirement that the label pod-count exists.
// It returns nil if the selector does not use this label.
func SlimSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	isLabel := func(r metav1.LabelSelectorRequirement) bool { return r.Key == Label }
	if _, required := s.MatchLabels[Label]; !required && !slices.ContainsFunc(s.MatchExpressions, isLabel) {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: Label, Operator: metav1.LabelSelectorOpExists}}}
}

// patch returns the merge patch that sets the label pod-count of the ReplicaSet to n. It returns
// nil if the label is up to date.
func patch(rs *appsv1.ReplicaSet, n int) ([]byte, error) {
	want := strconv.Itoa(n)
	if got, ok := rs.Labels[Label]; isExempt(rs) || ok && got == want {
		return nil, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// The UID makes the API server reject the patch if the ReplicaSet has been replaced by
		// another with the same name.
		"uid":    rs.UID,
		"labels": map[string]string{Label: want},
	}})
	if err != nil {
		return nil, fmt.Errorf("write a patch: %w", err)
	}
	return body, nil
}
