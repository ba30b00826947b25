// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// pool is a pool with its members, and the state derived from both.
type pool struct {
	object *tidekeeperv1.NodePool
	// ahead is set while the informer lags behind this process's own last write of the pool.
	ahead    ahead
	selector labels.Selector
	// invalid is the error caused by the pool's selector, or nil if the selector is valid.
	invalid error

	members sets.Set[string]
	sums    sums
	plans   plans
	turns   turns
	writes  writes
	// emptying is the set of members that are being emptied within budgets.
	emptying sets.Set[string]

	// statusWritten is the time at which this process last wrote the pool's status. It is zero
	// before the first write.
	statusWritten time.Time
}

// ahead describes a pool version that was returned by a write of this process and that the informer
// has not delivered yet. The zero value means that the informer does not lag behind.
type ahead struct {
	version string
	// unplanned is true if the pool's nodes need new plans once the informer delivers the version.
	// queued is the set of nodes that were queued after the write, and that need not be queued
	// again when the informer delivers the version.
	unplanned bool
	queued    sets.Set[string]
}

func newPool() *pool {
	return &pool{
		members: sets.New[string](), turns: newTurns(), emptying: sets.New[string](),
		plans:  plans{outdated: sets.New[string](), annotationsFull: sets.New[string](), conflicts: map[string][]plan.Conflict{}},
		writes: writes{refused: map[string]string{}, cleanups: map[string]int{}},
	}
}

// plans aggregates the results for a pool from the latest plans of the pool's nodes.
type plans struct {
	// outdated is the set of members that do not match the pool's spec yet. annotationsFull is the
	// set of members that lack space for the pool's annotations.
	outdated, annotationsFull sets.Set[string]
	// conflicts maps node names to the pool's conflicts with older pools on the node.
	conflicts map[string][]plan.Conflict
}

// planned updates the pool after a new plan was computed for a node, given the summaries of the
// previous and the new plan. It reports whether the pool's results have changed.
func (p *pool) planned(node string, before, now *plan.Summary) (changed bool) {
	name := p.object.Name
	for _, s := range []struct {
		set         sets.Set[string]
		before, now []string
	}{
		{p.plans.outdated, before.Outdated, now.Outdated},
		{p.turns.pending, before.EvictionPending, now.EvictionPending},
		{p.plans.annotationsFull, before.AnnotationsFull, now.AnnotationsFull},
	} {
		was, is := slices.Contains(s.before, name), slices.Contains(s.now, name)
		if is {
			s.set.Insert(node)
		} else {
			s.set.Delete(node)
		}
		changed = changed || was != is
	}
	p.turns.planned(name, node, before, now)
	if !slices.Contains(now.Affected, name) && p.writes.accepted(node) {
		changed = true
	}
	conflicts := slices.DeleteFunc(slices.Clone(now.Conflicts), func(c plan.Conflict) bool { return c.Pool != name })
	if !slices.Equal(p.plans.conflicts[node], conflicts) {
		changed = true
		if p.plans.conflicts[node] = conflicts; len(conflicts) == 0 {
			delete(p.plans.conflicts, node)
		}
	}
	return changed
}

// leave removes a node from the pool's members and resource sums, and drops the pool's records of
// writes to the node.
func (p *pool) leave(node *node) {
	p.members.Delete(node.name)
	p.turns.failing.Delete(node.name)
	delete(p.writes.cleanups, node.name)
	p.sums.remove(&node.figures)
}

// writes tracks the writes of nodes whose plans include the pool.
type writes struct {
	inProgress int
	// refused maps node names to error messages, for the nodes on which the API server rejects the
	// pool's settings.
	refused map[string]string
	// cleanups maps node names to the number of writes of the node since the deletion of the pool
	// began.
	cleanups map[string]int
}

// accepted records that the API server accepts the pool's settings for a node, or that the node
// needs no write for the pool. It reports whether the settings had been rejected before.
func (w *writes) accepted(node string) bool {
	_, was := w.refused[node]
	delete(w.refused, node)
	return was
}

// maxCleanups is the maximum number of writes of a node for which the deletion of a pool waits.
// After that, the node's ownership annotation may still name the pool, because another client keeps
// forging the annotation. Such a client must not be able to block the deletion.
const maxCleanups = 5

// awaits reports whether the pool's deletion still has to wait for a node that has the pool's
// settings.
func (w *writes) awaits(node string) bool { return w.cleanups[node] < maxCleanups }

// report sets the snapshot's fields about nodes to which the pool's settings cannot be written, and
// about conflicts with older pools.
func (p *pool) report(v *PoolSnapshot) {
	v.Refused = len(p.plans.annotationsFull) + len(p.writes.refused)
	if len(p.plans.annotationsFull) > 0 {
		v.RefusedNode, v.RefusedReason = slices.Min(p.plans.annotationsFull.UnsortedList()), plan.AnnotationsFullReason
	}
	if len(p.writes.refused) > 0 {
		v.RefusedNode = slices.Min(slices.Collect(maps.Keys(p.writes.refused)))
		v.RefusedReason = p.writes.refused[v.RefusedNode]
	}
	if len(p.plans.conflicts) > 0 {
		v.FirstConflict = p.plans.conflicts[slices.Min(slices.Collect(maps.Keys(p.plans.conflicts)))][0]
	}
}
