// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan computes the changes to a node's settings. It decides which settings to add, keep
// and remove, which pool wins if several pools specify the same setting, and how fast NoExecute
// taints are added to nodes.
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

// NodePlan is a set of changes to write to a node, with the results to report for the node's pools.
type NodePlan struct {
	// Set maps the keys of the settings to add or change to their values. Remove is the set of keys
	// of the settings to remove.
	Set    map[setting.Key]string
	Remove sets.Set[setting.Key]
	// Read is the set of keys whose current values the plan depends on.
	Read sets.Set[setting.Key]
	// Ownership and Closed are the two parts of the ownership annotation that the plan writes.
	Ownership ownership.Record
	Closed    ownership.Closed
	// recordOnly is set if the plan changes the ownership annotation and no setting.
	recordOnly bool

	// Changes lists the changes of settings, sorted by pool. It is used for events and logs.
	Changes []Change
	// Conflicts lists the keys to which a member pool and an older member pool assign different
	// values.
	Conflicts []Conflict
	// Outdated lists the pools that the node belongs to, but whose settings are not up to date on
	// the node yet: a setting must still be added, changed or removed.
	Outdated []string
	// EvictionPending lists the member pools that still wait for permission to add a NoExecute
	// taint to the node, or to close the node to new pods for such a taint. Evicting lists the
	// member pools that have this permission, and for which this plan adds the taint or closes the
	// node.
	EvictionPending, Evicting []string
	// Emptying lists the NoExecute taints for which the node is closed to new pods and is being
	// emptied. Emptied lists the NoExecute taints with the eviction WithinBudgets that this plan
	// adds.
	Emptying, Emptied []TaintBeingPrepared
	// AnnotationsFull lists the member pools whose settings are not added to the node, because the
	// node's annotations would then exceed the API server's size limit.
	AnnotationsFull []string

	// Affected lists the pools for which a setting or an ownership entry changes, oldest first.
	Affected []string
	// BeingDeleted lists the pools considered in the plan that are being deleted.
	BeingDeleted []string
	// Orphaned lists the removals of keys that a pool managed in the past and that it no longer
	// manages.
	Orphaned []Change
}

// ChangeKind is the kind of change that a plan makes to a setting.
type ChangeKind string

// Kinds of changes.
const (
	// Added means that the node had no value for the key, or a value set by another pool.
	Added ChangeKind = "added"
	// Replaced means that the node had another value for the key, which was not set by a pool.
	Replaced ChangeKind = "replaced"
	// Updated means that the value in the pool's spec has changed.
	Updated ChangeKind = "updated"
	// Restored means that another client had changed or removed a value set by the pool.
	Restored ChangeKind = "restored"
	// Removed means that the setting is no longer in the pool's spec.
	Removed ChangeKind = "removed"
)

// Change is the change of a single setting on behalf of a pool.
type Change struct {
	Pool string
	Key  setting.Key
	Kind ChangeKind
}

// String describes the change for events and logs.
func (c Change) String() string {
	return fmt.Sprintf("pool %s: %s %s", c.Pool, c.Kind, c.Key)
}

// Conflict describes a key on a node to which Pool and the older pool Owner assign different
// values.
type Conflict struct {
	Pool, Owner string
	Node        string
	Key         setting.Key
}

// Empty reports whether the plan has nothing to write.
func (p *NodePlan) Empty() bool {
	return len(p.Set) == 0 && len(p.Remove) == 0 && !p.recordOnly
}

// OwnershipText returns the value of the ownership annotation that the plan writes, or "" if it
// removes the annotation.
func (p *NodePlan) OwnershipText() string { return p.Ownership.Text(p.Closed) }

// ApplyTo returns a copy of the node with the plan applied. Fields that plans never change are
// shared with the given node. at becomes the timeAdded of added NoExecute taints.
func (p *NodePlan) ApplyTo(node *corev1.Node, at time.Time) *corev1.Node {
	after := setting.Apply(node, p.Set, p.Remove, at)
	if text := p.OwnershipText(); text == "" {
		delete(after.Annotations, tidekeeperv1.OwnershipAnnotation)
	} else {
		after.Annotations[tidekeeperv1.OwnershipAnnotation] = text
	}
	return after
}

// Patch returns the JSON patch that carries out the plan. The API server accepts it as long as the
// node's values for the keys in Read have not changed, regardless of other changes.
func (p *NodePlan) Patch(node *corev1.Node, now time.Time) []byte {
	return setting.Patch(node, p.ApplyTo(node, now), p.Read)
}

// VersionedPatch returns the JSON merge patch that carries out the plan. The API server accepts it
// only if the node's resourceVersion has not changed.
func (p *NodePlan) VersionedPatch(node *corev1.Node, now time.Time) []byte {
	return setting.VersionedPatch(node, p.ApplyTo(node, now))
}

// Summary is the part of a plan that package state keeps for each node.
type Summary struct {
	// NeedsWrite reports whether the plan requires a write to the node.
	NeedsWrite bool
	// Conflicts and the following fields are copied from [NodePlan].
	Conflicts                                                      []Conflict
	Outdated, EvictionPending, Evicting, AnnotationsFull, Affected []string
	Emptying                                                       []TaintBeingPrepared
}

// Summary returns the part of the plan that package state keeps for each node.
func (p *NodePlan) Summary() Summary {
	return Summary{
		NeedsWrite: !p.Empty(), Conflicts: p.Conflicts,
		Outdated: p.Outdated, EvictionPending: p.EvictionPending, Evicting: p.Evicting, AnnotationsFull: p.AnnotationsFull, Affected: p.Affected,
		Emptying: p.Emptying,
	}
}
