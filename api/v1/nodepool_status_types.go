// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePoolStatus is the observed state of the pool.
type NodePoolStatus struct {
	// observedGeneration is the generation of the spec that this status was computed from.
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

	// capacity is the total capacity of the member nodes. Of a node with more than 64
	// resources, 64 count, always including cpu, memory, pods and ephemeral-storage. Of a pool
	// with more than 128 resources, the 128 that most nodes have are shown.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the total of allocatable resources of the member nodes.
	//
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// requested is the total of resources requested by the pods on the member nodes, computed
	// as the scheduler does: pods that are bound to a node and not terminal, with their init
	// containers, sidecars, overhead and pod-level resources. Only resources that a member node
	// offers are included.
	//
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`

	// requestedPercent is the utilization: requested as a share of allocatable, in whole
	// percent, rounded down. A resource of which nothing is allocatable is omitted.
	//
	// +optional
	RequestedPercent map[corev1.ResourceName]int32 `json:"requestedPercent,omitempty"`

	// usableNodes is the number of member nodes that accept new pods: a pod that tolerates the
	// pool's own taints can start there if its requests fit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UsableNodes int32 `json:"usableNodes"`

	// usable is the part of allocatable that new pods and running pods can use. The rest is
	// reported in lost.
	//
	// +optional
	Usable corev1.ResourceList `json:"usable,omitempty"`

	// free is the part of usable that is not requested, summed over the nodes. A pod smaller
	// than this total may still fit on no single node: see largestFits.
	//
	// +optional
	Free corev1.ResourceList `json:"free,omitempty"`

	// lost is the part of allocatable that new pods cannot use, by cause. Each node counts for
	// the first cause that applies. At most eight resources are shown: cpu, memory, and the
	// others in alphabetical order.
	//
	// +optional
	// +listType=map
	// +listMapKey=cause
	Lost []Lost `json:"lost,omitempty"`

	// largestFits are the largest pods that can start now: the free resources of the node with the
	// most free cpu, of the node with the most free memory, and of the node with the most free
	// of each other resource except ephemeral-storage and pods. At most four nodes are listed,
	// each with at most eight resources, as in lost.
	//
	// +optional
	// +listType=map
	// +listMapKey=node
	LargestFits []LargestFit `json:"largestFits,omitempty"`

	// summary is the utilization in short, for the columns of kubectl get. Programs should read
	// requested, allocatable and requestedPercent instead.
	//
	// +optional
	Summary UtilizationSummary `json:"summary,omitempty,omitzero"`

	// managed lists the keys that the pool may have put on nodes: the keys in the spec, and
	// keys that were removed from the spec and may still be on some node. The manager updates
	// this field before any node, and removes only keys listed here from nodes, whatever the
	// ownership record on a node contains.
	//
	// +optional
	Managed ManagedKeys `json:"managed,omitempty,omitzero"`

	// heldBackNodes is the number of member nodes that wait for a NoExecute taint because a
	// Freeze is in force.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	HeldBackNodes int32 `json:"heldBackNodes,omitempty"`

	// emptying describes the member nodes that are being emptied within budgets.
	//
	// +optional
	Emptying *EmptyingStatus `json:"emptying,omitempty"`

	// conditions are Ready, Reconciling and Stalled as kstatus defines them, Conflicted, and
	// Headroom if the spec asks for headroom. The reason of Ready is the STATUS column.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LostCause is the reason why new pods cannot use resources of a node.
type LostCause string

// The causes, in order of precedence: a node counts for the first that applies.
const (
	LostBeingDeleted LostCause = "BeingDeleted"
	LostNotReady     LostCause = "NotReady"
	LostCordoned     LostCause = "Cordoned"
	// LostOtherTaint means that the node has a taint with the effect NoSchedule or NoExecute
	// that is not in the pool's spec.
	LostOtherTaint LostCause = "OtherTaint"
	// LostPodLimitReached means that the node runs its maximum number of pods, so that no new pod can
	// use its free resources.
	LostPodLimitReached LostCause = "PodLimitReached"
)

// Lost is the amount of resources that new pods cannot use, for one cause.
type Lost struct {
	// cause is the reason of the loss: BeingDeleted, NotReady, Cordoned, OtherTaint or
	// PodLimitReached.
	Cause LostCause `json:"cause"`

	// nodes is the number of nodes to which the cause applies.
	//
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// resources are the lost resources: for most causes all that is allocatable on these nodes;
	// for PodLimitReached only the resources that are not requested, since the requested resources
	// are in use.
	//
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// LargestFit is the set of free resources of one node: the largest pod that would start there now.
// The most free cpu and the most free memory may be on different nodes, but a pod needs all of
// its resources on the same node, so each entry describes a whole node.
type LargestFit struct {
	// node is the name of the node.
	Node string `json:"node"`

	// resources are the free resources of the node.
	//
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// UtilizationSummary is the utilization as text, like "1.5/8 (18%)": requested, allocatable and
// percentage, the amounts rounded to three digits and the percentage rounded down. A resource
// of which nothing is allocatable is omitted.
type UtilizationSummary struct {
	// cpu is the utilization of cpu, in cores.
	//
	// +optional
	CPU string `json:"cpu,omitempty"`

	// memory is the utilization of memory, in bytes with a binary prefix such as Gi.
	//
	// +optional
	Memory string `json:"memory,omitempty"`

	// pods is the utilization of pods: the number of pods bound to the nodes, and the number
	// allowed.
	//
	// +optional
	Pods string `json:"pods,omitempty"`
}

// ManagedKeys lists keys of labels, annotations and taints of nodes.
type ManagedKeys struct {
	// labels is a list of label keys.
	//
	// +optional
	// +listType=set
	Labels []string `json:"labels,omitempty"`

	// annotations is a list of annotation keys.
	//
	// +optional
	// +listType=set
	Annotations []string `json:"annotations,omitempty"`

	// taints is a list of taints, each in the form key:effect.
	//
	// +optional
	// +listType=set
	Taints []string `json:"taints,omitempty"`
}
