// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which settings to add to a node, keep and remove, which pool wins if two
// pools ask for the same setting, and how fast NoExecute taints are added to nodes.
package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// NodePlan is the set of changes to write to a node, with the results to report.
type NodePlan struct {
	// Set are the settings to put on the node, Remove the settings to remove from it.
	Set    map[setting.Key]string
	Remove sets.Set[setting.Key]
	// Read are the settings of the planned node that the plan depends on.
	Read sets.Set[setting.Key]
	// Ownership is the ownership record after the plan.
	Ownership ownership.Record
	// OwnershipChanged reports whether Ownership differs from the record on the node.
	OwnershipChanged bool
	// ownershipText is Ownership as the text of the annotation.
	ownershipText string

	// Changes are the changes of settings, by pool, for events and logs.
	Changes []Change
	// Conflicts are keys that a member pool asks for and an older pool owns.
	Conflicts []Conflict
	// Outdated are the member pools whose spec the node does not match yet.
	Outdated []string
	// EvictionPending are the member pools with a NoExecute taint that waits for its turn,
	// Evicting the member pools whose NoExecute taint this plan adds.
	EvictionPending, Evicting []string
	// AnnotationsFull are the member pools that are left out because the annotations of the node
	// would exceed the API server's limit.
	AnnotationsFull []string

	// Affected are the pools for which a setting or the record changes, the oldest first.
	Affected []string
	// BeingDeleted are the pools of the plan that are being deleted.
	BeingDeleted []string
	// Orphaned are the removals of keys that a pool managed in the past and no pool manages
	// now.
	Orphaned []Change
}

// ChangeKind is the kind of change that a plan makes to a setting.
type ChangeKind string

// The kinds of changes.
const (
	// Added means that the node had no value, or a value that another pool had put there.
	Added ChangeKind = "added"
	// Replaced means that the node had another value, which no pool had put there.
	Replaced ChangeKind = "replaced"
	// Updated means that the pool asks for another value than before.
	Updated ChangeKind = "updated"
	// Restored means that another client had changed or removed the pool's value.
	Restored ChangeKind = "restored"
	// Removed means that the pool no longer asks for the setting.
	Removed ChangeKind = "removed"
)

// Change is a change of one setting for one pool.
type Change struct {
	Pool string
	Key  setting.Key
	Kind ChangeKind
}

// String returns the change in words.
func (c Change) String() string {
	return fmt.Sprintf("pool %s: %s %s", c.Pool, c.Kind, c.Key)
}

// Conflict is a key on a node that Pool asks for and that the older pool Owner owns with
// another value.
type Conflict struct {
	Pool, Owner string
	Node        string
	Key         setting.Key
}

// Empty reports whether there is nothing to write.
func (p *NodePlan) Empty() bool {
	return len(p.Set) == 0 && len(p.Remove) == 0 && !p.OwnershipChanged
}

// ApplyTo returns a copy of the node with the plan applied. The copy shares with the node all
// fields that no plan changes.
func (p *NodePlan) ApplyTo(node *corev1.Node, at time.Time) *corev1.Node {
	after := setting.Apply(node, p.Set, p.Remove, at)
	if p.ownershipText == "" {
		delete(after.Annotations, tidekeeperv1.OwnershipAnnotation)
	} else {
		after.Annotations[tidekeeperv1.OwnershipAnnotation] = p.ownershipText
	}
	return after
}

// Patch returns the JSON patch that carries out the plan. The patch applies as long as the
// settings in Read have not changed on the node, whatever else is written to the node.
func (p *NodePlan) Patch(node *corev1.Node, now time.Time) []byte {
	return setting.Patch(node, p.ApplyTo(node, now), p.Read)
}

// VersionedPatch returns the JSON merge patch that carries out the plan. The patch applies only
// to the resourceVersion of the planned node.
func (p *NodePlan) VersionedPatch(node *corev1.Node, now time.Time) []byte {
	return setting.VersionedPatch(node, p.ApplyTo(node, now))
}

// Summary is the part of a plan that the model keeps for each node.
type Summary struct {
	// NeedsWrite reports whether the plan changes the node.
	NeedsWrite bool
	// The other fields are as in [NodePlan].
	Conflicts                                                      []Conflict
	Outdated, EvictionPending, Evicting, AnnotationsFull, Affected []string
}

// Summary returns the summary of the plan.
func (p *NodePlan) Summary() Summary {
	return Summary{
		NeedsWrite: !p.Empty(), Conflicts: p.Conflicts,
		Outdated: p.Outdated, EvictionPending: p.EvictionPending, Evicting: p.Evicting, AnnotationsFull: p.AnnotationsFull, Affected: p.Affected,
	}
}
