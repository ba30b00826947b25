// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// MaintenanceEnd is the event that ends the maintenance of a drained node.
type MaintenanceEnd string

// Values of [MaintenanceEnd].
const (
	// UntilAnnotationRemoved waits until [DrainedForMaintenanceAnnotation] is removed from the node.
	UntilAnnotationRemoved MaintenanceEnd = "AnnotationRemoved"
	// UntilRebooted waits until the boot ID of the node changes.
	UntilRebooted MaintenanceEnd = "Rebooted"
	// UntilUpgraded waits until the kubelet's version changes.
	UntilUpgraded MaintenanceEnd = "Upgraded"
	// UntilReplaced waits until the Node is deleted.
	UntilReplaced MaintenanceEnd = "Replaced"
	// UntilDrained waits for nothing.
	UntilDrained MaintenanceEnd = "Drained"
)

// SingleReplicas is the treatment of pods whose eviction would take down their workload.
type SingleReplicas string

// Values of [SingleReplicas].
const (
	// SingleReplicasRestart restarts the workload.
	SingleReplicasRestart SingleReplicas = "Restart"
	// SingleReplicasEvict evicts the pods.
	SingleReplicasEvict SingleReplicas = "Evict"
)

// UnmanagedPods is the treatment of pods without a controller.
type UnmanagedPods string

// Values of [UnmanagedPods].
const (
	// UnmanagedPodsKeep keeps the pods, and does not drain their node.
	UnmanagedPodsKeep UnmanagedPods = "Keep"
	// UnmanagedPodsEvict evicts the pods.
	UnmanagedPodsEvict UnmanagedPods = "Evict"
)

// NodePhase is a step of the maintenance of a node.
type NodePhase string

// Phases of a node, in this order. A node in one of the last three phases does not change its phase
// in the same round.
const (
	// NodeDraining means that the node is cordoned, and its pods are being moved.
	NodeDraining NodePhase = "Draining"
	// NodeDrained means that the node is drained, and that its maintenance is not complete yet.
	NodeDrained NodePhase = "Drained"
	// NodeReturning means that the maintenance is complete, and the node is not ready yet.
	NodeReturning NodePhase = "Returning"
	// NodeDone means that the node is back in use, or was deleted after its drain.
	NodeDone NodePhase = "Done"
	// NodeFailed means that the node could not be drained, or was not ready before the timeout.
	NodeFailed NodePhase = "Failed"
	// NodeReleased means that another client uncordoned the node, or deleted it during its drain.
	// The manager does not change the node for the rest of the round.
	NodeReleased NodePhase = "Released"
)
