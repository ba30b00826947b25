// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// turns are the members of a pool that lack a NoExecute taint of its spec. They get the taint a
// limited number at a time.
type turns struct {
	// pending are members that wait for the taint, and allowed the members whose turn it is.
	pending, allowed sets.Set[string]
	// failing are members that lost their turn because their last write failed, for any reason.
	failing sets.Set[string]
}

func newTurns() turns {
	return turns{pending: sets.New[string](), allowed: sets.New[string](), failing: sets.New[string]()}
}

// allow gives a turn to a node if it is waiting, and reports whether it was.
func (t *turns) allow(node string) bool {
	if !t.pending.Has(node) {
		return false
	}
	t.allowed.Insert(node)
	return true
}

// withdraw ends the turn of a node, and reports whether the node had a turn.
func (t *turns) withdraw(node string) bool {
	had := t.allowed.Has(node)
	t.allowed.Delete(node)
	return had
}

// fail ends the turn of a node that could not be written, so that other nodes are not held up:
// the node waits again, behind nodes without failures. It reports whether the node had a turn.
func (t *turns) fail(node string) bool {
	if !t.withdraw(node) {
		return false
	}
	t.failing.Insert(node)
	return true
}

// planned ends the turn of a node that has the taint now, or for which the pool no longer asks
// for the taint: if the taint has to be added once more, the node waits for its turn again.
func (t *turns) planned(pool, node string, before, now *plan.Summary) {
	if slices.Contains(before.Evicting, pool) && !slices.Contains(now.Evicting, pool) {
		t.allowed.Delete(node)
	}
}
