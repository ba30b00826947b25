// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePoolStatus is the observed state of the pool.
type NodePoolStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodeCount is the number of member nodes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeCount int32 `json:"nodeCount"`

	// readyNodes is the number of member nodes whose condition Ready is True.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyNodes int32 `json:"readyNodes"`

	// capacity is the sum of the member nodes' capacity. If a node has more than
	// 64 resources, 64 of them count, including cpu, memory, pods and
	// ephemeral-storage; if a pool has more than 128, those that most nodes have
	// are shown.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the sum of the member nodes' allocatable resources.
	//
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// requested is the sum of what the pods on the member nodes request, as
	// the scheduler counts it: pods bound to a node and not terminal, with
	// their init containers, sidecars, overhead and pod-level resources. Only
	// resources that a member node offers are included.
	//
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`

	// requestedPercent is the utilization: requested as a share of allocatable,
	// in whole percent, rounded down. A resource with nothing allocatable is
	// left out.
	//
	// +optional
	RequestedPercent map[corev1.ResourceName]int32 `json:"requestedPercent,omitempty"`

	// usableNodes is the number of member nodes on which a new pod that tolerates
	// the pool's own taints can start, if there is enough free.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UsableNodes int32 `json:"usableNodes"`

	// usable is what new pods and those that run can use of allocatable. The rest
	// is lost.
	//
	// +optional
	Usable corev1.ResourceList `json:"usable,omitempty"`

	// free is what is usable and not requested. It is the sum over the nodes, so
	// that no node need have room for a pod that is smaller: see largestFits.
	//
	// +optional
	Free corev1.ResourceList `json:"free,omitempty"`

	// lost is what new pods cannot use of allocatable, by cause. A node counts for
	// the first cause that applies. Of the resources, the first eight are shown:
	// cpu, memory, and the others by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=cause
	Lost []Lost `json:"lost,omitempty"`

	// largestFits are the largest pods that can start now: what is free on the node with
	// the most free cpu, on that with the most free memory, and on those with the
	// most of each other resource, other than ephemeral-storage and pods, at most
	// four nodes. Of the resources, the first
	// eight are shown, as in lost.
	//
	// +optional
	// +listType=map
	// +listMapKey=node
	LargestFits []LargestFit `json:"largestFits,omitempty"`

	// summary is the level in short, for people: the columns of kubectl get.
	// Programs read requested, allocatable and requestedPercent.
	//
	// +optional
	Summary UtilizationSummary `json:"summary,omitempty,omitzero"`

	// managed names the keys that the pool may have put on nodes: those of
	// the spec, and those that were removed from the spec but not from every
	// node yet. It is written before any node, and only keys named here are
	// ever removed from a node, whatever the record on the node says.
	//
	// +optional
	Managed ManagedKeys `json:"managed,omitempty,omitzero"`

	// heldBackNodes is the number of members that wait for a NoExecute taint because
	// a Freeze is in force.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	HeldBackNodes int32 `json:"heldBackNodes,omitempty"`

	// conditions of the pool: Ready (its reason is the STATUS column),
	// Reconciling and Stalled as kstatus defines them, Conflicted, and Headroom
	// if the spec asks for it.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LostCause is why new pods cannot use what a node has.
type LostCause string

// The causes, in the order in which the first that applies counts.
const (
	LostBeingDeleted LostCause = "BeingDeleted"
	LostNotReady     LostCause = "NotReady"
	LostCordoned     LostCause = "Cordoned"
	// LostOtherTaint is a taint with the effect NoSchedule or NoExecute that the pool does
	// not ask for.
	LostOtherTaint LostCause = "OtherTaint"
	// LostPodLimitReached means that the node has as many pods as it may have, so that what is free
	// there cannot be used.
	LostPodLimitReached LostCause = "PodLimitReached"
)

// Lost is what new pods cannot use for one cause.
type Lost struct {
	// cause of the loss.
	Cause LostCause `json:"cause"`

	// nodes on which it is lost.
	//
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// resources that are lost: all that is allocatable on these nodes; for
	// PodLimitReached only what is not requested, as what is requested is in use.
	//
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// LargestFit is what is free on one node: the largest pod that would start there now. A pod needs
// all of its resources on the same node, but the most cpu and the most memory may be free on
// different ones, so each entry is a whole.
type LargestFit struct {
	// node on which it is free.
	Node string `json:"node"`

	// resources that are free.
	//
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// UtilizationSummary says how much is requested of what is allocatable, like
// "1.5/8 (18%)": rounded to three digits, the percentage rounded down. A
// resource with nothing allocatable is left out.
type UtilizationSummary struct {
	// cpu in cores.
	//
	// +optional
	CPU string `json:"cpu,omitempty"`

	// memory in bytes, with a binary prefix.
	//
	// +optional
	Memory string `json:"memory,omitempty"`

	// pods that are bound to the nodes.
	//
	// +optional
	Pods string `json:"pods,omitempty"`
}

// ManagedKeys names labels, annotations and taints of nodes.
type ManagedKeys struct {
	// labels by key.
	//
	// +optional
	// +listType=set
	Labels []string `json:"labels,omitempty"`

	// annotations by key.
	//
	// +optional
	// +listType=set
	Annotations []string `json:"annotations,omitempty"`

	// taints as key:effect.
	//
	// +optional
	// +listType=set
	Taints []string `json:"taints,omitempty"`
}
