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

// pool is a pool and its members.
type pool struct {
	object *tidekeeperv1.NodePool
	// ahead is the version that a write of this process returned, if the informer has not shown
	// it yet.
	ahead    ahead
	selector labels.Selector
	// invalid is the error in the pool's selector; nil if the selector is valid.
	invalid error

	members sets.Set[string]
	sums    sums
	plans   plans
	turns   turns
	writes  writes

	// statusWritten is the time of the last write of the pool's status; zero before the first.
	statusWritten time.Time
}

// ahead is a version of a pool that a write of this process returned and that the informer has
// not shown yet. The zero value means that there is none.
type ahead struct {
	version string
	// unplanned is true if the nodes must be planned again when the informer shows the version.
	// queued are the nodes that need not be queued again then.
	unplanned bool
	queued    sets.Set[string]
}

func newPool() *pool {
	return &pool{
		members: sets.New[string](), turns: newTurns(),
		plans:  plans{outdated: sets.New[string](), annotationsFull: sets.New[string](), conflicts: map[string][]plan.Conflict{}},
		writes: writes{refused: map[string]string{}, cleanups: map[string]int{}},
	}
}

// plans are the results for a pool from the latest plans of nodes.
type plans struct {
	// outdated are members that do not match the pool's spec yet, and annotationsFull members whose
	// annotations have no space left for the pool's annotations.
	outdated, annotationsFull sets.Set[string]
	// conflicts are the conflicts of the pool with older pools, by node.
	conflicts map[string][]plan.Conflict
}

// planned replaces the summary before of a node's plan by the summary now, and reports whether
// that changes the pool.
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

// leave ends a node's membership.
func (p *pool) leave(node *node) {
	p.members.Delete(node.name)
	p.turns.failing.Delete(node.name)
	delete(p.writes.cleanups, node.name)
	p.sums.remove(&node.figures)
}

// writes are the writes of nodes whose plans include the pool.
type writes struct {
	inProgress int
	// refused maps nodes for which the API server refuses the pool's settings to the error
	// message.
	refused map[string]string
	// cleanups is the number of writes of each node since the deletion of the pool began.
	cleanups map[string]int
}

// accepted records that a node can be written for the pool, or no longer needs a write for the
// pool. It reports whether the API server had refused the pool's settings before.
func (w *writes) accepted(node string) bool {
	_, was := w.refused[node]
	delete(w.refused, node)
	return was
}

// maxCleanups is the maximum number of times that a pool which is being deleted is removed from a
// node's record before the pool ceases to wait for the node: a client that forges the record
// again each time must not block the deletion.
const maxCleanups = 5

// awaits reports whether a pool that is being deleted waits for a node that has its settings.
func (w *writes) awaits(node string) bool { return w.cleanups[node] < maxCleanups }

// report sets the fields of a snapshot about nodes that cannot be written.
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
