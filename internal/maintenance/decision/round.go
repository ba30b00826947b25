// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// rounds begins rounds, and counts their nodes.
type rounds struct {
	state *state
	// ticks is the schedule; nil for a single round.
	ticks *schedule.Schedule
}

// begin begins the first round, or the round of the latest tick if the previous round is over,
// and reports whether it has begun one. Nodes that have failed and are still cordoned keep their
// progress, because they are still in maintenance.
func (r *rounds) begin() (begun bool) {
	created := r.state.Maintenance.CreationTimestamp
	if r.ticks == nil {
		r.state.status.NextRoundTime = nil
		if r.state.status.RoundTime == nil {
			r.state.status.RoundTime = created.DeepCopy()
			return true
		}
		return false
	}
	since := created.Time
	if r.state.status.RoundTime != nil {
		since = r.state.status.RoundTime.Time
	}
	tick, _, due := r.ticks.Latest(since, r.state.Now)
	if due && !r.state.spec.Suspend && r.isOver() {
		r.state.status.RoundTime = &metav1.Time{Time: tick}
		r.state.status.ToleratedFailures = 0
		maps.DeleteFunc(r.state.status.Nodes, func(_ string, p tidekeeperv1.NodeProgress) bool { return !IsRunning(p) })
		begun = true
	}
	r.state.status.NextRoundTime = nil
	if next, ok := r.ticks.Next(r.state.Now); ok {
		r.state.status.NextRoundTime = &metav1.Time{Time: next}
		r.state.wake(next)
	}
	return begun
}

// isOver reports whether no round has begun, or all nodes of the round have been maintained. A
// round that stopped at the failure limit is not over: it continues once the spec is edited.
func (r *rounds) isOver() bool {
	if r.state.status.RoundTime == nil {
		return true
	}
	edited := r.state.status.ObservedGeneration != r.state.Maintenance.Generation
	stopped := r.state.failures()-r.state.status.ToleratedFailures >= max(1, r.state.spec.FailureLimit) && !edited
	return !stopped && !r.state.drainsRun() && len(r.state.left()) == 0
}

// observe records the generation of the spec. After an edit, earlier failures no longer count.
func (r *rounds) observe() {
	if r.state.status.ObservedGeneration != r.state.Maintenance.Generation {
		r.state.status.ToleratedFailures = r.state.failures()
	}
	r.state.status.ObservedGeneration = r.state.Maintenance.Generation
}

// leaveOutNewNodes removes nodes that were created after the round began from the selection.
// Otherwise a NodeMaintenance whose only round ended long ago would drain each new node of a pool.
// Nodes that are selected because they are outdated remain selected.
func (r *rounds) leaveOutNewNodes() {
	if r.state.spec.Nodes.Outdated != nil || r.state.status.RoundTime == nil {
		return
	}
	r.state.Selected = slices.DeleteFunc(slices.Clone(r.state.Selected), func(name string) bool {
		_, begun := r.state.status.Nodes[name]
		return !begun && r.state.Nodes[name].Created.After(r.state.status.RoundTime.Time)
	})
}

// sweep removes the annotations and labels of this NodeMaintenance from nodes that it no longer
// maintains. They remain if a manager is killed between writing the status and patching a node.
func (r *rounds) sweep() {
	for _, name := range slices.Sorted(maps.Keys(r.state.Nodes)) {
		n := r.state.Nodes[name]
		p, begun := r.state.status.Nodes[name]
		switch {
		case n.CordonedFor != string(r.state.Maintenance.UID) || begun && IsRunning(p) && p.UID == n.UID:
		case begun && p.Phase == tidekeeperv1.NodeReleased:
			r.state.act(Clean, n)
		default:
			r.state.act(Uncordon, n)
		}
	}
}

// count sets the numbers of nodes by phase in the status.
func (r *rounds) count() {
	s := r.state.status
	s.Done, s.Running, s.Failed, s.Selected = 0, 0, 0, int32(len(s.Nodes))
	for _, p := range s.Nodes {
		switch p.Phase {
		case tidekeeperv1.NodeDone, tidekeeperv1.NodeReleased:
			s.Done++
		case tidekeeperv1.NodeFailed:
			s.Failed++
		default:
			s.Running++
		}
	}
	for _, name := range r.state.Selected {
		if _, known := s.Nodes[name]; !known {
			s.Selected++
		}
	}
}
