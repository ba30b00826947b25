// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// MaintenanceEnd is the event by which the maintenance of a drained node is done.
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

// SingleReplicas says how pods leave whose workload would be down after an eviction.
type SingleReplicas string

// Values of [SingleReplicas].
const (
	// SingleReplicasRestart restarts the workload.
	SingleReplicasRestart SingleReplicas = "Restart"
	// SingleReplicasEvict evicts the pods.
	SingleReplicasEvict SingleReplicas = "Evict"
)

// UnmanagedPods says what happens to pods without a controller.
type UnmanagedPods string

// Values of [UnmanagedPods].
const (
	// UnmanagedPodsKeep leaves the pods on the node, which cannot be drained.
	UnmanagedPodsKeep UnmanagedPods = "Keep"
	// UnmanagedPodsEvict evicts the pods.
	UnmanagedPodsEvict UnmanagedPods = "Evict"
)

// NodePhase is a step of the maintenance of a node.
type NodePhase string

// Phases of a node, in this order. The last three are final in a round.
const (
	// NodeDraining means that the node is cordoned, and its pods are being moved.
	NodeDraining NodePhase = "Draining"
	// NodeDrained means that the node is empty, and is being maintained.
	NodeDrained NodePhase = "Drained"
	// NodeReturning means that the maintenance is done, and the node is not ready yet.
	NodeReturning NodePhase = "Returning"
	// NodeDone means that the node is in use again, or was deleted after its drain.
	NodeDone NodePhase = "Done"
	// NodeFailed means that the node could not be drained, or was not ready in time.
	NodeFailed NodePhase = "Failed"
	// NodeReleased means that another client uncordoned the node, or deleted it while it was being
	// drained. The manager leaves it alone for the rest of the round.
	NodeReleased NodePhase = "Released"
)
