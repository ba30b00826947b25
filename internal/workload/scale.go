// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Unknown returns an object with the given kind, name and namespace and without other fields. It
// identifies the workload in requests for the workload's scale subresource.
func Unknown(ref tidekeeperv1.TargetRef, namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.GetAPIVersion(), ref.Kind))
	o.SetNamespace(namespace)
	o.SetName(ref.Name)
	return o
}

// ScaledState derives the state of a workload from its scale subresource. An empty selector is an
// error, because it would select all pods of the namespace.
func ScaledState(ref tidekeeperv1.TargetRef, scale *autoscalingv1.Scale) (*State, error) {
	selector, err := metav1.ParseToLabelSelector(scale.Status.Selector)
	if err != nil {
		return nil, fmt.Errorf("the scale subresource of %s %s has the invalid selector %.64q: %w", ref.Kind, ref.Name, scale.Status.Selector, err)
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, fmt.Errorf("the scale subresource of %s %s does not select pods: its CRD must name a labelSelectorPath, and the selector must not be empty", ref.Kind, ref.Name)
	}
	s := stateOf(ref.Kind, scale)
	s.Name, s.Scaled, s.Selector = ref.Name, true, selector
	s.Pods = max(0, scale.Spec.Replicas)
	s.Updates = s.Pods
	s.Rollout = Progress{Available: scale.Status.Replicas >= s.Pods}
	if !s.Rollout.Available {
		s.Rollout.Message = fmt.Sprintf("it has %d of %d pods", scale.Status.Replicas, s.Pods)
	}
	return s, nil
}
