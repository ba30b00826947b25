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
	"k8s.io/apimachinery/pkg/types"
)

// controllerOf returns the UID of the object that controls the pod, or "".
func controllerOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// counts tells whether the pod is one that its ReplicaSet has: it has not ended
// and is not being deleted.
func counts(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// count returns how many of the pods the ReplicaSet has.
func count(rs *appsv1.ReplicaSet, pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		if controllerOf(&pods[i]) == rs.UID && counts(&pods[i]) {
			n++
		}
	}
	return n
}

// leftAlone tells whether the label of the ReplicaSet is not to be written.
func leftAlone(rs *appsv1.ReplicaSet) bool {
	if rs.DeletionTimestamp != nil {
		return true
	}
	// Such a selector is the Deployment's too, which finds its ReplicaSets by
	// their labels: with another value it would let go of this one, and make
	// the next, without end.
	s := rs.Spec.Selector
	if s == nil {
		return false
	}
	_, named := s.MatchLabels[Label]
	return named || slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == Label })
}

// patch returns the merge patch that makes the label of the ReplicaSet say n,
// or nil if there is nothing to write.
func patch(rs *appsv1.ReplicaSet, n int) ([]byte, error) {
	want := strconv.Itoa(n)
	if got, ok := rs.Labels[Label]; leftAlone(rs) || ok && got == want {
		return nil, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// Refused if another ReplicaSet has the name by now.
		"uid":    rs.UID,
		"labels": map[string]string{Label: want},
	}})
	if err != nil {
		return nil, fmt.Errorf("write a patch: %w", err)
	}
	return body, nil
}
