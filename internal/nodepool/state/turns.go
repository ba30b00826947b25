// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// turns tracks the members of a pool that lack a NoExecute taint of its spec. Such a member must
// wait for its turn, that is, for permission to get the taint or to be closed to new pods for it.
// Only a limited number of members have their turn at the same time.
type turns struct {
	// pending is the set of members that wait for permission to get the taint or to be closed to
	// new pods. allowed maps each member with this permission to the time at which it was granted.
	pending sets.Set[string]
	allowed map[string]time.Time
	// emptied is the set of members that have been emptied and may get their NoExecute taints.
	emptied sets.Set[string]
	// failing is the set of members that lost their permission because their last write failed, for
	// any reason.
	failing sets.Set[string]
}

func newTurns() turns {
	return turns{pending: sets.New[string](), allowed: map[string]time.Time{}, emptied: sets.New[string](), failing: sets.New[string]()}
}

// allow permits a waiting node to get its NoExecute taint, or to be closed to new pods for it. It
// reports whether the node was waiting. emptied is true if the taints affect no pod on the node.
func (t *turns) allow(node string, emptied bool, now time.Time) bool {
	if !t.pending.Has(node) {
		return false
	}
	t.allowed[node] = now
	if emptied {
		t.emptied.Insert(node)
	}
	return true
}

// withdraw revokes the permissions to close a node and to add NoExecute taints to it. It reports
// whether there were any.
func (t *turns) withdraw(node string) bool {
	_, had := t.allowed[node]
	had = had || t.emptied.Has(node)
	delete(t.allowed, node)
	t.emptied.Delete(node)
	return had
}

// fail revokes the permissions of a node whose write failed, so that the node does not hold up
// other nodes. The node waits again, behind nodes without failures. fail reports whether the node
// had any permission.
func (t *turns) fail(node string) bool {
	if !t.withdraw(node) {
		return false
	}
	t.failing.Insert(node)
	return true
}

// planned is called after a new plan for a node. It revokes the pool's permission to taint or close
// the node if the previous plan used this permission and the new plan does not. If the taint must
// be added again later, the node has to wait again.
func (t *turns) planned(pool, node string, before, now *plan.Summary) {
	if slices.Contains(now.Evicting, pool) {
		return
	}
	t.emptied.Delete(node)
	if slices.Contains(before.Evicting, pool) {
		delete(t.allowed, node)
	}
}
