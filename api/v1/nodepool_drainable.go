// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Drainable defines how to evaluate whether the nodes of a pool can be drained.
type Drainable struct {
	// ignore is the list of reasons that do not make the condition Drainable False. For instance,
	// ignore LocalData for a pool that is drained with kubectl drain --delete-emptydir-data. The
	// metrics also omit ignored reasons.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Ignore []DrainBlocker `json:"ignore,omitempty"`
}

// DrainBlocker is a reason why a drain would not remove a pod, or would do harm.
//
// +kubebuilder:validation:Enum=Budget;SeveralBudgets;Terminating;Finalizer;LongGrace;NoController;LocalData;NoPlace
type DrainBlocker string

// Reasons why a pod blocks the drain of its node.
const (
	// DrainBlockerBudget means that a PodDisruptionBudget does not currently allow the eviction.
	DrainBlockerBudget DrainBlocker = "Budget"
	// DrainBlockerSeveralBudgets means that several PodDisruptionBudgets select the pod, in
	// which case the API server rejects every eviction.
	DrainBlockerSeveralBudgets DrainBlocker = "SeveralBudgets"
	// DrainBlockerTerminating means that the pod was deleted and still exists after its grace
	// period.
	DrainBlockerTerminating DrainBlocker = "Terminating"
	// DrainBlockerFinalizer means that the pod has finalizers, so that it continues to exist after
	// its deletion until they are removed.
	DrainBlockerFinalizer DrainBlocker = "Finalizer"
	// DrainBlockerLongGrace means that the termination grace period of the pod is longer than
	// ten minutes.
	DrainBlockerLongGrace DrainBlocker = "LongGrace"
	// DrainBlockerNoController means that no controller creates a replacement for the pod.
	DrainBlockerNoController DrainBlocker = "NoController"
	// DrainBlockerLocalData means that the pod has emptyDir volumes, whose data is lost when the
	// pod is deleted.
	DrainBlockerLocalData DrainBlocker = "LocalData"
	// DrainBlockerNoPlace means that the other nodes have no room for a replacement of the pod.
	DrainBlockerNoPlace DrainBlocker = ReasonNoPlace
)
