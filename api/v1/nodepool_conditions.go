// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// ConditionConflicted is True while an older pool has a key that a NodePool asks for.
// A NodePool also has the conditions [ConditionReady], [ConditionReconciling] and
// [ConditionStalled].
const ConditionConflicted = "Conflicted"

// Reasons of the condition Ready of a NodePool, in order of precedence. With the
// first six the pool is not ready, with the others it is.
const (
	// ReasonDeleting means that the pool is being deleted and its settings are being
	// removed from nodes.
	ReasonDeleting = "Deleting"
	// ReasonInvalidSelector means that the selector cannot be used. The schema of
	// the CRD normally refuses such a selector.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonRuntimeClassConflict means that a RuntimeClass with the name of the
	// pool's exists and is not owned by the pool.
	ReasonRuntimeClassConflict = "RuntimeClassConflict"
	// ReasonNodePatchRefused means that some nodes cannot be patched for this pool.
	ReasonNodePatchRefused = "NodePatchRefused"
	// ReasonConflicted means that the condition Conflicted is True.
	ReasonConflicted = "Conflicted"
	// ReasonOutOfSync means that some nodes do not match the pool's spec yet.
	ReasonOutOfSync = "OutOfSync"
	// ReasonNoNodes means that the pool selects no node.
	ReasonNoNodes = "NoNodes"
	// ReasonNodesNotReady means that all nodes match the pool's spec, and some of
	// them are not Ready themselves.
	ReasonNodesNotReady = "NodesNotReady"
	// ReasonHealthy means that all nodes are Ready and match the pool's spec.
	ReasonHealthy = "Healthy"
)

// Reasons of the condition Conflicted of a NodePool.
const (
	// ReasonKeyConflict means that an older pool has a key that this pool asks for.
	ReasonKeyConflict = "KeyConflict"
	// ReasonNoConflict means that no older pool has a key that this pool asks for.
	ReasonNoConflict = "NoConflict"
)

// ConditionHeadroom says whether the pods of a lost node or zone of a NodePool would find a
// place. It is there if the spec asks for headroom.
const ConditionHeadroom = "Headroom"

// Reasons of the condition Headroom of a NodePool. It is also Unknown with [ReasonNoNodes].
const (
	// ReasonEnoughRoom means that a place was found for all pods, whichever node or zone
	// is lost: there is one.
	ReasonEnoughRoom = "EnoughRoom"
	// ReasonNoPlace means that no place was found for some pods. There may be one that
	// was not found.
	ReasonNoPlace = "NoPlace"
	// ReasonNoZones means that zones were asked for, and no node of the pool is in one.
	ReasonNoZones = "NoZones"
	// ReasonNotEvaluated means that the pool was not looked at yet since it asks.
	ReasonNotEvaluated = "NotEvaluated"
)

// Reasons of events about a NodePool.
const (
	// EventNodesJoined is recorded when nodes begin to match the selector.
	EventNodesJoined = "NodesJoined"
	// EventNodesLeft is recorded when nodes no longer match the selector, or are gone.
	EventNodesLeft = "NodesLeft"
	// EventSettingsApplied is recorded when the settings of the pool were put on
	// nodes, changed there, or removed from them.
	EventSettingsApplied = "SettingsApplied"
	// EventDriftCorrected is recorded when another client had changed a setting of
	// the pool on a node, and the pool's value was restored.
	EventDriftCorrected = "DriftCorrected"
	// EventValueReplaced is recorded when a value that no pool had put on a node was
	// replaced by the pool's.
	EventValueReplaced = "ValueReplaced"
	// EventNodePatchFailed is recorded when a node could not be patched.
	EventNodePatchFailed = "NodePatchFailed"
	// EventNodePatchRefused is recorded when the pool becomes not ready for the reason
	// of the same name.
	EventNodePatchRefused = "NodePatchRefused"
	// EventConflictingWriter is recorded when another client, or another pool, keeps
	// reverting the pool's changes to a node, so that they are throttled.
	EventConflictingWriter = "ConflictingWriter"
	// EventKeyConflict is recorded when the condition Conflicted becomes True.
	EventKeyConflict = "KeyConflict"
	// EventHeadroomLost is recorded when the condition Headroom becomes False.
	EventHeadroomLost = "HeadroomLost"
	// EventEvictingPods is recorded when NoExecute taints of the pool are allowed onto
	// nodes.
	EventEvictingPods = "EvictingPods"
	// EventRuntimeClassConflict is recorded when the pool becomes not ready for the
	// reason of the same name.
	EventRuntimeClassConflict = "RuntimeClassConflict"
	// EventRuntimeClassCreated is recorded when the RuntimeClass of the pool was created.
	EventRuntimeClassCreated = "RuntimeClassCreated"
	// EventRuntimeClassUpdated is recorded when the scheduling of the RuntimeClass was
	// changed to follow the pool.
	EventRuntimeClassUpdated = "RuntimeClassUpdated"
	// EventRuntimeClassReplaced is recorded when the RuntimeClass was deleted and
	// created again because its handler cannot be changed.
	EventRuntimeClassReplaced = "RuntimeClassReplaced"
	// EventRuntimeClassDeleted is recorded when the RuntimeClass was deleted because
	// the pool no longer has a handler.
	EventRuntimeClassDeleted = "RuntimeClassDeleted"
)
