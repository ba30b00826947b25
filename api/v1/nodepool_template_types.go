// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// NodeTemplate describes a node that does not exist yet, as it joins the cluster. The pool's own
// labels and taints are added to it.
type NodeTemplate struct {
	// allocatable is the resources of the node that pods can request: at least cpu, memory and
	// pods. At most 64.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(r, type(self[r]) == int ? self[r] >= 0 : !self[r].startsWith('-'))",message="an amount of allocatable must not be negative"
	// +kubebuilder:validation:XValidation:rule="['cpu', 'memory', 'pods'].all(r, r in self)",message="allocatable needs cpu, memory and pods: kubectl get node NAME -o jsonpath='{.status.allocatable}' prints those of a node"
	Allocatable map[corev1.ResourceName]resource.Quantity `json:"allocatable"`

	// labels are the labels with which the node joins. At most 64.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// taints are the taints with which the node joins, without those that are removed once it is
	// ready. At most 32.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.eviction))",message="eviction is not for the taints of a nodeTemplate: a new node has no pods"
	Taints []Taint `json:"taints,omitempty"`
}
