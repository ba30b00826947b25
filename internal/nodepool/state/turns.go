// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// turns tracks the members of a pool that lack a NoExecute taint of its spec. A member whose turn
// it is may get the taint. Only a limited number of members have their turn at the same time.
type turns struct {
	// pending is the set of members that wait for their turn. allowed is the set of members whose
	// turn it is.
	pending, allowed sets.Set[string]
	// failing is the set of members that lost their turn because their last write failed, for any
	// reason.
	failing sets.Set[string]
}

func newTurns() turns {
	return turns{pending: sets.New[string](), allowed: sets.New[string](), failing: sets.New[string]()}
}

// allow gives a waiting node its turn. It reports whether the node was waiting.
func (t *turns) allow(node string) bool {
	if !t.pending.Has(node) {
		return false
	}
	t.allowed.Insert(node)
	return true
}

// withdraw ends a node's turn. It reports whether the node had its turn.
func (t *turns) withdraw(node string) bool {
	had := t.allowed.Has(node)
	t.allowed.Delete(node)
	return had
}

// fail ends the turn of a node whose write failed, so that the node does not hold up other nodes.
// The node waits again, behind nodes without failures. fail reports whether the node had its turn.
func (t *turns) fail(node string) bool {
	if !t.withdraw(node) {
		return false
	}
	t.failing.Insert(node)
	return true
}

// planned ends the turn of a node that has got the taint or no longer needs it. If the taint has to
// be added again later, the node has to wait for another turn.
func (t *turns) planned(pool, node string, before, now *plan.Summary) {
	if slices.Contains(before.Evicting, pool) && !slices.Contains(now.Evicting, pool) {
		t.allowed.Delete(node)
	}
}
