// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// DrainedForMaintenanceAnnotation on a node says that the node is drained for a NodeMaintenance,
// whose name is the value. Removing the annotation tells the manager that the maintenance is done.
const DrainedForMaintenanceAnnotation = "tidekeeper.dev/drained-for-maintenance"

// CordonedForMaintenanceAnnotation on a node says that the manager cordoned the node. Its value is
// the UID of the NodeMaintenance. Only a node with this annotation is uncordoned.
const CordonedForMaintenanceAnnotation = "tidekeeper.dev/cordoned-for-maintenance"

// DrainedLabel on a node has the value "true" while the node is drained for a NodeMaintenance, so
// that a DaemonSet can run there and nowhere else.
const DrainedLabel = "tidekeeper.dev/drained"

// NodeMaintenanceLabel on a ScheduledRestart has the name of the NodeMaintenance that moves the pods
// of the workload. Such ScheduledRestarts are created and deleted by the manager.
const NodeMaintenanceLabel = "tidekeeper.dev/node-maintenance"

// NodeMaintenanceFinalizer keeps a deleted NodeMaintenance until its nodes are uncordoned.
const NodeMaintenanceFinalizer = "tidekeeper.dev/node-maintenance"

// Reasons of the condition Ready of a NodeMaintenance, besides [ReasonDeleting],
// [ReasonInvalidSchedule], [ReasonInvalidSelector], [ReasonFailureLimit], [ReasonSuspended],
// [ReasonScheduled] before the first round, [ReasonFrozen], [ReasonWindowClosed], [ReasonNoPlace]
// and [ReasonNoNodes].
const (
	// ReasonMaintaining means that nodes are being drained, are drained, or are returning.
	ReasonMaintaining = "Maintaining"
	// ReasonMaxUnavailable means that no further drain begins until fewer nodes are unavailable.
	ReasonMaxUnavailable = "MaxUnavailable"
	// ReasonComplete means that all selected nodes have been maintained in this round.
	ReasonComplete = "Complete"
)

// Reasons of the progress of a node, besides those of [internal/drain].
const (
	// ReasonDrainTimeout means that the node was not empty in time.
	ReasonDrainTimeout = "DrainTimeout"
	// ReasonMaintenanceTimeout means that the drained node was not ready again in time.
	ReasonMaintenanceTimeout = "MaintenanceTimeout"
	// ReasonUncordoned means that another client uncordoned the node, or removed the annotation by which
	// the manager knows that it cordoned the node.
	ReasonUncordoned = "Uncordoned"
	// ReasonNodeDeleted means that the Node was deleted.
	ReasonNodeDeleted = "NodeDeleted"
	// ReasonPodsLeaving means that pods of the node are being moved.
	ReasonPodsLeaving = "PodsLeaving"
	// ReasonWaitingForMaintenance means that the node is drained, and is being maintained.
	ReasonWaitingForMaintenance = "WaitingForMaintenance"
	// ReasonNodeNotReady means that the node is not ready, or its pods of DaemonSets are not.
	ReasonNodeNotReady = "NodeNotReady"
)

// Reasons of events about a NodeMaintenance and its nodes.
const (
	// EventDrainStarted is recorded when the drain of a node begins.
	EventDrainStarted = "DrainStarted"
	// EventNodeDrained is recorded when a node is drained.
	EventNodeDrained = "NodeDrained"
	// EventNodeReturned is recorded when a node is in use again.
	EventNodeReturned = "NodeReturned"
	// EventNodeMaintenanceFailed is recorded when the maintenance of a node has failed.
	EventNodeMaintenanceFailed = "NodeMaintenanceFailed"
	// EventNodeReleased is recorded when the manager leaves a node alone, because another client
	// uncordoned or deleted it.
	EventNodeReleased = "NodeReleased"
)
