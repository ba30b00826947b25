// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// DrainedForMaintenanceAnnotation on a node means that the node has been drained for a
// NodeMaintenance. The value is the name of the NodeMaintenance. To report that the maintenance is
// complete, remove the annotation.
const DrainedForMaintenanceAnnotation = "tidekeeper.dev/drained-for-maintenance"

// CordonedForMaintenanceAnnotation on a node means that the manager cordoned the node for a
// NodeMaintenance. The value is the UID of the NodeMaintenance. The manager only uncordons nodes
// with this annotation.
const CordonedForMaintenanceAnnotation = "tidekeeper.dev/cordoned-for-maintenance"

// MaintenanceDueTaint is the key of a taint with the effect PreferNoSchedule on nodes that are still
// to be drained in a round, so that the scheduler prefers other nodes for the pods of drained nodes. The
// value is the UID of the NodeMaintenance.
const MaintenanceDueTaint = "tidekeeper.dev/maintenance-due"

// DrainedLabel on a node has the value "true" while the node is drained for a NodeMaintenance. With
// it as a node selector, a DaemonSet runs on drained nodes only.
const DrainedLabel = "tidekeeper.dev/drained"

// NodeMaintenanceLabel on a ScheduledRestart is the name of the NodeMaintenance that moves the pods
// of the workload. The manager creates and deletes these ScheduledRestarts.
const NodeMaintenanceLabel = "tidekeeper.dev/node-maintenance"

// NodeMaintenanceFinalizer keeps a deleted NodeMaintenance until its nodes are uncordoned.
const NodeMaintenanceFinalizer = "tidekeeper.dev/node-maintenance"

// Reasons of the condition Ready of a NodeMaintenance, besides [ReasonDeleting],
// [ReasonInvalidSchedule], [ReasonInvalidSelector], [ReasonFailureLimit], [ReasonSuspended],
// [ReasonScheduled] before the first round, [ReasonFrozen], [ReasonWindowClosed], [ReasonNoPlace]
// and [ReasonNoNodes].
const (
	// ReasonMaintaining means that some nodes are being drained, are drained, or are waiting to
	// become ready again after their maintenance.
	ReasonMaintaining = "Maintaining"
	// ReasonMaxUnavailable means that no further drain starts until fewer nodes are unavailable.
	ReasonMaxUnavailable = "MaxUnavailable"
	// ReasonComplete means that all selected nodes have been maintained in this round.
	ReasonComplete = "Complete"
)

// Reasons in the progress of a node, besides the reasons of [internal/drain].
const (
	// ReasonDrainTimeout means that the node still had pods when the drain timed out.
	ReasonDrainTimeout = "DrainTimeout"
	// ReasonMaintenanceTimeout means that the drained node was not ready again when the maintenance
	// timed out.
	ReasonMaintenanceTimeout = "MaintenanceTimeout"
	// ReasonUncordoned means that another client uncordoned the node, or removed the annotation
	// that marks it as cordoned by the manager.
	ReasonUncordoned = "Uncordoned"
	// ReasonNodeDeleted means that the Node was deleted.
	ReasonNodeDeleted = "NodeDeleted"
	// ReasonPodsLeaving means that pods of the node are being moved.
	ReasonPodsLeaving = "PodsLeaving"
	// ReasonWaitingForMaintenance means that the node is drained, and that its maintenance is not
	// complete yet.
	ReasonWaitingForMaintenance = "WaitingForMaintenance"
	// ReasonNodeNotReady means that the node, or a DaemonSet pod on it, is not ready.
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
	// EventNodeReturned is recorded when a node is back in use.
	EventNodeMaintenanceFailed = "NodeMaintenanceFailed"
	// EventNodeReleased is recorded when the manager stops managing a node, because another client
	// uncordoned or deleted it.
	EventNodeReleased = "NodeReleased"
)
