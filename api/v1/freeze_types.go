// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FreezeSpec defines the period of a freeze, its namespaces and its reason.
//
// +kubebuilder:validation:XValidation:rule="!has(self.from) || self.until > self.from",message="until must be later than from"
type FreezeSpec struct {
	// from is the time at which the freeze begins. Defaults to the creation time of the Freeze.
	//
	// +optional
	From *metav1.Time `json:"from,omitempty"`

	// until is the time at which the freeze ends. Must be later than from.
	Until metav1.Time `json:"until"`

	// reason is a one-line explanation of the freeze, at most 256 characters long. Shown in the
	// status of the ScheduledRestarts and NodePools that wait for the freeze.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:cntrl:]]*[^[:cntrl:][:space:]][^[:cntrl:]]*$')",message="reason must be one line that is not blank"
	Reason string `json:"reason"`

	// namespaceSelector selects, by their labels, the namespaces in which no restart is
	// started. An absent or empty selector selects all namespaces. Whatever the selector, a
	// freeze keeps node pools from adding NoExecute taints to nodes, because pods of any
	// namespace may run there.
	//
	// +optional
	NamespaceSelector *NamespaceSelector `json:"namespaceSelector,omitempty"`
}

// NamespaceSelector selects namespaces by their labels. A namespace must satisfy all of
// matchLabels and all of matchExpressions. To select namespaces by name, use the label
// kubernetes.io/metadata.name. The type is a metav1.LabelSelector with bounds, which keep the
// cost of its validation rules within the limits of the API server.
type NamespaceSelector struct {
	// matchLabels is a map of labels that a namespace must have, with exactly these values. At
	// most 32.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions is a list of label requirements, all of which a namespace must satisfy.
	// At most 32.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []NamespaceSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NamespaceSelectorRequirement is a requirement on one label of a namespace.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",message="In and NotIn need values; Exists and DoesNotExist take none"
type NamespaceSelectorRequirement struct {
	// key is the label key that the requirement applies to.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	Key string `json:"key"`

	// operator relates the label to the values: In, NotIn, Exists or DoesNotExist.
	//
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values is the list of label values for the operators In and NotIn, which need at least
	// one. Must be empty for Exists and DoesNotExist. At most 64.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Values []LabelValue `json:"values,omitempty"`
}

// FreezeStatus is the observed state of a freeze.
type FreezeStatus struct {
	// observedGeneration is the generation of the spec that this status was computed from.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// heldBack counts the restarts and nodes that the freeze holds back. The counts lag by some
	// seconds, and keep their last values once the freeze has ended.
	//
	// +optional
	HeldBack HeldBack `json:"heldBack,omitempty"`

	// conditions are InForce, and Ready and Stalled as kstatus defines them. The reason of
	// Ready is the STATUS column: Pending, InForce, Ended or InvalidSelector.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HeldBack counts the restarts and nodes that a freeze holds back. A restart or node held back
// by several freezes counts for each of them.
type HeldBack struct {
	// restarts is the number of ScheduledRestarts with a due restart that waits for the freeze.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts,omitempty"`

	// missedTicks is the number of ticks whose starting deadline has passed during the freeze,
	// as far back as the histories of the ScheduledRestarts go.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MissedTicks int32 `json:"missedTicks,omitempty"`

	// nodes is the number of nodes that wait for a NoExecute taint of a pool.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes,omitempty"`
}

// Freeze keeps Tidekeeper from disturbing running pods for a period of time, in selected
// namespaces or in all. Restarts that have already started continue.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=tidekeeper
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`,description="When the freeze ends"
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.heldBack.restarts`,description="ScheduledRestarts with a due restart that waits"
// +kubebuilder:printcolumn:name="Missed",type=integer,JSONPath=`.status.heldBack.missedTicks`,description="Ticks whose deadline has passed during the freeze"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.heldBack.nodes`,description="Nodes that wait for a NoExecute taint"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.from`,priority=1,description="When the freeze begins; empty if at its creation"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Explanation of the status"
type Freeze struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the period of the freeze, its namespaces and its reason.
	Spec FreezeSpec `json:"spec"`

	// status is the observed state of the freeze.
	//
	// +optional
	Status FreezeStatus `json:"status,omitempty"`
}

// FreezeList is a list of Freezes.
//
// +kubebuilder:object:root=true
type FreezeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Freeze `json:"items"`
}
