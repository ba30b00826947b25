// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	nodev1 "k8s.io/api/node/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// RuntimeClass describes the effect of a change of pools on a pool's RuntimeClass.
type RuntimeClass struct {
	Name string `json:"name"`
	// Action is Create, Update (if the scheduling changes), Replace (if the handler changes),
	// Delete, or Conflict (if the pool does not own the RuntimeClass).
	Action string `json:"action"`
	From   string `json:"from,omitempty"` // previous handler
	To     string `json:"to,omitempty"`   // new handler
}

// Values of [RuntimeClass.Action] that are also used outside this package.
const (
	ActionConflict = "Conflict"
	ActionDelete   = "Delete"
)

var runtimeClassActions = map[plan.RuntimeClassAction]string{
	plan.RuntimeClassCreate: "Create", plan.RuntimeClassUpdate: "Update", plan.RuntimeClassReplace: "Replace",
	plan.RuntimeClassDelete: ActionDelete, plan.RuntimeClassNotOwned: ActionConflict,
}

// OfRuntimeClass returns the effect on a pool's RuntimeClass of changing the pool from `before` to
// `after`, or nil if there is none. before is nil for a new pool. existing is the current
// RuntimeClass, or nil. As in [Nodes], changes in progress are not included.
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
		// When the pool is deleted, the garbage collector deletes the RuntimeClass that it owns.
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
