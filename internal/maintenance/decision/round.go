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

// rounds begins the rounds of a NodeMaintenance, and counts the nodes of the current round by
// phase. In a round, each selected node is maintained once.
type rounds struct {
	state *state
	// ticks is the schedule by which rounds begin; nil if there is only a single round.
	ticks *schedule.Schedule
}

// begin begins a round if it is due, and reports whether it has begun one. Without a schedule, a
// single round begins at once. With a schedule, the round of the latest scheduled time begins when
// the previous round is over. Nodes that have failed and are still cordoned keep their progress,
// because they are still in maintenance.
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

// isOver reports whether no round has begun, or the maintenance of all nodes of the round has
// ended. A round that stopped at the failure limit is not over: it continues once the spec is
// edited.
func (r *rounds) isOver() bool {
	if r.state.status.RoundTime == nil {
		return true
	}
	edited := r.state.status.ObservedGeneration != r.state.Maintenance.Generation
	stopped := r.state.failures()-r.state.status.ToleratedFailures >= max(1, r.state.spec.FailureLimit) && !edited
	return !stopped && !r.state.drainsRun() && len(r.state.left()) == 0
}

// observe records the generation of the spec in the status. After an edit of the spec, earlier
// failures no longer count towards the failure limit.
func (r *rounds) observe() {
	if r.state.status.ObservedGeneration != r.state.Maintenance.Generation {
		r.state.status.ToleratedFailures = r.state.failures()
	}
	r.state.status.ObservedGeneration = r.state.Maintenance.Generation
}

// leaveOutNewNodes removes from the selected nodes the nodes that were created after the round
// began. Otherwise a NodeMaintenance whose only round ended long ago would drain each new node of a
// pool. Nodes that are selected because they are outdated remain selected.
func (r *rounds) leaveOutNewNodes() {
	if r.state.spec.Nodes.Outdated != nil || r.state.status.RoundTime == nil {
		return
	}
	r.state.Selected = slices.DeleteFunc(slices.Clone(r.state.Selected), func(name string) bool {
		_, begun := r.state.status.Nodes[name]
		return !begun && r.state.Nodes[name].Created.After(r.state.status.RoundTime.Time)
	})
}

// sweep uncordons nodes that are cordoned for this NodeMaintenance but are no longer in
// maintenance, and removes its annotations and label from them. A node is in this state after a
// failed drain, or if a manager was killed between writing the status and patching the node. If
// another client has ended the maintenance by uncordoning the node, only the annotations and label
// are removed.
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

// count sets the numbers of selected, running, completed and failed nodes in the status.
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
