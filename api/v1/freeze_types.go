// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FreezeSpec says when nothing is disturbed, where, and why.
//
// +kubebuilder:validation:XValidation:rule="!has(self.from) || self.until > self.from",message="until must be later than from"
type FreezeSpec struct {
	// from is when the freeze begins. Default: when it is created.
	//
	// +optional
	From *metav1.Time `json:"from,omitempty"`

	// until is when it ends by itself.
	Until metav1.Time `json:"until"`

	// reason for the freeze, in one line. It is shown by everything that waits.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:cntrl:]]*[^[:cntrl:][:space:]][^[:cntrl:]]*$')",message="reason must be one line that is not blank"
	Reason string `json:"reason"`

	// namespaceSelector chooses the namespaces in which no restart is started, by
	// their labels. Without it, or if it is empty, these are all namespaces. No
	// freeze lets a node pool put a new NoExecute taint on a node, whatever its
	// selector is: pods of any namespace may be on the node.
	//
	// +optional
	NamespaceSelector *NamespaceSelector `json:"namespaceSelector,omitempty"`
}

// NamespaceSelector chooses namespaces by their labels: all of matchLabels and
// all of matchExpressions must hold. To name namespaces, use the label
// kubernetes.io/metadata.name, which each of them has. It is a
// metav1.LabelSelector with bounds, so that the API server can afford to check it.
type NamespaceSelector struct {
	// matchLabels are labels that a namespace must have, with exactly these values.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []NamespaceSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NamespaceSelectorRequirement is a requirement on a label of a namespace.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",message="In and NotIn need values; Exists and DoesNotExist take none"
type NamespaceSelectorRequirement struct {
	// key of the label.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	Key string `json:"key"`

	// operator that relates the label to the values.
	//
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values for In and NotIn.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Values []LabelValue `json:"values,omitempty"`
}

// FreezeStatus says whether the freeze is in force, and what it holds back.
type FreezeStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// heldBack counts what is held back. It follows what happens by some seconds, and
	// stays as it was at the end.
	//
	// +optional
	HeldBack HeldBack `json:"heldBack,omitempty"`

	// conditions: InForce; and Ready (its reason is the STATUS column: Pending, InForce,
	// Ended or InvalidSelector) and Stalled as kstatus defines them.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HeldBack counts what a freeze holds back. What several of them hold back, each counts.
type HeldBack struct {
	// restarts is the number of ScheduledRestarts with a restart that is due and waits.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts,omitempty"`

	// missedTicks is the number of ticks whose deadlines have passed meanwhile, as far
	// as the histories of the ScheduledRestarts reach.
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

// Freeze keeps Tidekeeper from starting anything that disturbs running pods: from a time
// until another one, in some namespaces or in all of them. What has been started goes on.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=tidekeeper
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`,description="When it ends by itself"
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.heldBack.restarts`,description="ScheduledRestarts with a restart that is due and waits"
// +kubebuilder:printcolumn:name="Missed",type=integer,JSONPath=`.status.heldBack.missedTicks`,description="Ticks whose deadlines have passed meanwhile"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.heldBack.nodes`,description="Nodes that wait for a NoExecute taint"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.from`,priority=1,description="When it begins, if not when it was created"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What the status means"
type Freeze struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says when nothing is disturbed, where, and why.
	Spec FreezeSpec `json:"spec"`

	// status says whether the freeze is in force, and what it holds back.
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
