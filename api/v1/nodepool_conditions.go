// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// ConditionConflicted is True while an older pool owns a key that a NodePool asks for. A
// NodePool also has the conditions [ConditionReady], [ConditionReconciling] and
// [ConditionStalled].
const ConditionConflicted = "Conflicted"

// Reasons of the condition Ready of a NodePool, in order of precedence. Ready is False for the
// first seven and True for the others.
const (
	// ReasonDeleting means that the pool is being deleted and its settings are being
	// removed from nodes.
	ReasonDeleting = "Deleting"
	// ReasonInvalidSelector means that the selector cannot be used. The schema of
	// the CRD normally refuses such a selector.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonRuntimeClassConflict means that a RuntimeClass named like the pool's exists, and
	// the pool does not own it.
	ReasonRuntimeClassConflict = "RuntimeClassConflict"
	// ReasonNodePatchRefused means that some nodes cannot be patched for this pool.
	ReasonNodePatchRefused = "NodePatchRefused"
	// ReasonConflicted means that the condition Conflicted is True.
	ReasonConflicted = "Conflicted"
	// ReasonEvictionBlocked means that nodes are being emptied within budgets, and that some of
	// their pods cannot be evicted.
	ReasonEvictionBlocked = "EvictionBlocked"
	// ReasonOutOfSync means that some nodes do not match the pool's spec yet.
	ReasonOutOfSync = "OutOfSync"
	// ReasonNoNodes means that the pool selects no node.
	ReasonNoNodes = "NoNodes"
	// ReasonNodesNotReady means that all nodes match the pool's spec, and some of the nodes are
	// not Ready.
	ReasonNodesNotReady = "NodesNotReady"
	// ReasonHealthy means that all nodes are Ready and match the pool's spec.
	ReasonHealthy = "Healthy"
)

// Reasons of the condition Conflicted of a NodePool.
const (
	// ReasonKeyConflict means that an older pool owns a key that this pool asks for.
	ReasonKeyConflict = "KeyConflict"
	// ReasonNoConflict means that no older pool owns a key that this pool asks for.
	ReasonNoConflict = "NoConflict"
)

// ConditionHeadroom is True while the pods of any lost node or zone of a NodePool would fit on
// the remaining nodes. Present only if the spec asks for headroom.
const ConditionHeadroom = "Headroom"

// Reasons of the condition Headroom of a NodePool, besides [ReasonNoNodes] with the status
// Unknown.
const (
	// ReasonEnoughRoom means that the simulation found a node for every pod, whichever node or
	// zone is lost. The result is certain.
	ReasonEnoughRoom = "EnoughRoom"
	// ReasonNoPlace means that the simulation found no node for some pods. The result is not
	// certain: the simulation does not try every placement.
	ReasonNoPlace = "NoPlace"
	// ReasonNoZones means that the spec asks for headroom for zones, and no node of the pool
	// has a zone.
	ReasonNoZones = "NoZones"
	// ReasonNotEvaluated means that the headroom of the pool, or the drainability of its nodes, has
	// not been evaluated yet.
	ReasonNotEvaluated = "NotEvaluated"
)

// ConditionDrainable is True while a drain of any node of the NodePool would remove all pods from
// the node. Present only if the spec has the field drainable.
const ConditionDrainable = "Drainable"

// Reasons of the condition Drainable of a NodePool, besides [ReasonNoNodes] and
// [ReasonNotEvaluated] with the status Unknown.
const (
	// ReasonPodsLeave means that a drain of any node of the pool would remove all of its pods.
	ReasonPodsLeave = "PodsLeave"
	// ReasonPodsStay means that a drain would not remove some pods, or would do harm.
	ReasonPodsStay = "PodsStay"
	// ReasonPartlyEvaluated means that no pod is known to block a drain, but that some
	// PodDisruptionBudgets were not evaluated.
	ReasonPartlyEvaluated = "PartlyEvaluated"
)

// Reasons of events about a NodePool.
const (
	// EventNodesJoined is recorded when nodes begin to match the selector.
	EventNodesJoined = "NodesJoined"
	// EventNodesLeft is recorded when nodes no longer match the selector, or were deleted.
	EventNodesLeft = "NodesLeft"
	// EventSettingsApplied is recorded when settings of the pool were added to nodes, changed
	// on nodes, or removed from nodes.
	EventSettingsApplied = "SettingsApplied"
	// EventDriftCorrected is recorded when the pool's value of a setting was restored on a node
	// after another client had changed it.
	EventDriftCorrected = "DriftCorrected"
	// EventValueReplaced is recorded when the pool's value replaced a value that no pool had
	// put on the node.
	EventValueReplaced = "ValueReplaced"
	// EventNodePatchFailed is recorded when a node could not be patched.
	EventNodePatchFailed = "NodePatchFailed"
	// EventNodePatchRefused is recorded when the pool becomes not ready for the reason
	// of the same name.
	EventNodePatchRefused = "NodePatchRefused"
	// EventConflictingWriter is recorded when another client or another pool keeps reverting
	// the pool's changes to a node, so that the pool's patches of the node are throttled.
	EventConflictingWriter = "ConflictingWriter"
	// EventKeyConflict is recorded when the condition Conflicted becomes True.
	EventKeyConflict = "KeyConflict"
	// EventHeadroomLost is recorded when the condition Headroom becomes False.
	EventHeadroomLost = "HeadroomLost"
	// EventEvictingPods is recorded shortly before NoExecute taints of the pool are added to nodes,
	// which evicts pods, and before nodes are emptied within budgets.
	EventEvictingPods = "EvictingPods"
	// EventEvictionBlocked is recorded for a node that is being emptied within budgets, when no
	// pod has left it for a while.
	EventEvictionBlocked = "EvictionBlocked"
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
