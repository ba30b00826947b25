// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxEmptyingMessageLength is the maximum length in bytes of the message of a [BlockedNode].
const MaxEmptyingMessageLength = 512

// EmptyingStatus describes the member nodes that are being emptied within budgets.
type EmptyingStatus struct {
	// nodes is the number of member nodes that are being emptied.
	//
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// blockedNodes is the number of nodes that no pod has left for some time, although pods are due
	// to leave.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	BlockedNodes int32 `json:"blockedNodes,omitempty"`

	// blocked is the node that has been blocked for the longest time.
	//
	// +optional
	Blocked *BlockedNode `json:"blocked,omitempty"`
}

// BlockedNode is a node that cannot be emptied within budgets, with an example of a blocking pod.
type BlockedNode struct {
	// node is the node's name.
	Node string `json:"node"`

	// since is when a pod last left.
	Since metav1.Time `json:"since"`

	// pods is the number of pods that still have to leave the node.
	//
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// pod is a blocking pod, as namespace/name.
	Pod string `json:"pod"`

	// message is why the pod stays.
	//
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}
