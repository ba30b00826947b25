// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxEmptyingMessageLength is the maximum length in bytes of the message of a [BlockedNode].
const MaxEmptyingMessageLength = 512

// EmptyingStatus describes the member nodes that are being emptied within budgets.
type EmptyingStatus struct {
	// nodes is the number of these nodes.
	//
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// blockedNodes is the number of nodes that no pod has left for a while.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	BlockedNodes int32 `json:"blockedNodes,omitempty"`

	// blocked is the node blocked for longest.
	//
	// +optional
	Blocked *BlockedNode `json:"blocked,omitempty"`
}

// BlockedNode is a node that cannot be emptied within budgets, with an example of a pod that stays.
type BlockedNode struct {
	// node is the node's name.
	Node string `json:"node"`

	// since is when a pod last left.
	Since metav1.Time `json:"since"`

	// pods is the number of pods left.
	//
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// pod is a pod that stays, as namespace/name.
	Pod string `json:"pod"`

	// message is why the pod stays.
	//
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}
