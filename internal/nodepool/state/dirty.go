// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import "k8s.io/apimachinery/pkg/util/sets"

// Dirty lists the nodes and pools that must be reconciled after a change to the model.
type Dirty struct {
	// Nodes is the set of nodes that need a write.
	Nodes sets.Set[string]
	// Emptying is the set of nodes that are or were being emptied within budgets, and whose pods or
	// settings have changed.
	Emptying sets.Set[string]
	// Edited is the set of pools that were created, edited or deleted, whose nodes have all been
	// planned after an edit, or that a new leader has not reconciled yet.
	Edited sets.Set[string]
	// Pools is the set of pools whose members, readiness, conditions or deletion may have changed.
	Pools sets.Set[string]
	// Utilization is the set of pools for which only the utilization, the pending events or the
	// writes in progress have changed.
	Utilization sets.Set[string]
	// Unplanned is set if nodes wait for new plans: [Planning.More] must be called.
	Unplanned bool
}

func newDirty() Dirty {
	return Dirty{Nodes: sets.New[string](), Emptying: sets.New[string](), Edited: sets.New[string](), Pools: sets.New[string](), Utilization: sets.New[string]()}
}
