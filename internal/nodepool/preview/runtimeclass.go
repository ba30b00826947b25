// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	nodev1 "k8s.io/api/node/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// RuntimeClass is the effect of a change of pools on a pool's RuntimeClass.
type RuntimeClass struct {
	Name string `json:"name"`
	// Action is Create, Update (of the scheduling), Replace (because of another handler),
	// Delete, or Conflict if the pool does not own the RuntimeClass.
	Action string `json:"action"`
	From   string `json:"from,omitempty"` // handler
	To     string `json:"to,omitempty"`   // handler
}

// Actions for a RuntimeClass that the pool does not own, and for a deleted RuntimeClass.
const (
	ActionConflict = "Conflict"
	ActionDelete   = "Delete"
)

var runtimeClassActions = map[plan.RuntimeClassAction]string{
	plan.RuntimeClassCreate: "Create", plan.RuntimeClassUpdate: "Update", plan.RuntimeClassReplace: "Replace",
	plan.RuntimeClassDelete: ActionDelete, plan.RuntimeClassNotOwned: ActionConflict,
}

// OfRuntimeClass returns the effect on the pool's RuntimeClass when the pool before (nil if it
// did not exist) becomes the pool after; nil if nothing changes. existing is the current
// RuntimeClass, or nil. As for nodes, changes in progress are not included.
func OfRuntimeClass(before, after *tidekeeperv1.NodePool, existing *nodev1.RuntimeClass) *RuntimeClass {
	conflictBefore := false
	if before != nil {
		switch plan.DecideRuntimeClass(before, existing) {
		case plan.RuntimeClassNotOwned:
			conflictBefore = true
		case plan.RuntimeClassCreate, plan.RuntimeClassUpdate, plan.RuntimeClassReplace, plan.RuntimeClassDelete:
			existing = plan.DesiredRuntimeClass(before)
		}
	}
	p := &RuntimeClass{Name: plan.RuntimeClassName(after.Name), To: after.Spec.Handler}
	if existing != nil {
		p.From = existing.Handler
	}
	if !after.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the RuntimeClass if the pool owns it.
		after = after.DeepCopy()
		after.Spec.Handler, p.To = "", ""
	}
	action := plan.DecideRuntimeClass(after, existing)
	if action == plan.RuntimeClassUpToDate || action == plan.RuntimeClassNotOwned && conflictBefore {
		return nil
	}
	p.Action = runtimeClassActions[action]
	return p
}
