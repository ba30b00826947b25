// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// beginRound begins the first round, or the round of the latest tick if the previous round is over,
// and reports whether it has begun one. Nodes that have failed and are still cordoned keep their
// progress, because they are still in maintenance.
func (d *decider) beginRound() (begun bool) {
	created := d.Maintenance.CreationTimestamp
	if d.ticks == nil {
		d.status.NextRoundTime = nil
		if d.status.RoundTime == nil {
			d.status.RoundTime = created.DeepCopy()
			return true
		}
		return false
	}
	since := created.Time
	if d.status.RoundTime != nil {
		since = d.status.RoundTime.Time
	}
	tick, _, due := d.ticks.Latest(since, d.Now)
	if due && !d.spec.Suspend && d.isOver() {
		d.status.RoundTime = &metav1.Time{Time: tick}
		d.status.ToleratedFailures = 0
		maps.DeleteFunc(d.status.Nodes, func(_ string, p tidekeeperv1.NodeProgress) bool { return !IsRunning(p) })
		begun = true
	}
	d.status.NextRoundTime = nil
	if next, ok := d.ticks.Next(d.Now); ok {
		d.status.NextRoundTime = &metav1.Time{Time: next}
		d.wake(next)
	}
	return begun
}

// isOver reports whether no round has begun, or all nodes of the round have been maintained. A
// round that stopped at the failure limit is not over: it continues once the spec is edited.
func (d *decider) isOver() bool {
	if d.status.RoundTime == nil {
		return true
	}
	edited := d.status.ObservedGeneration != d.Maintenance.Generation
	stopped := d.failures()-d.status.ToleratedFailures >= max(1, d.spec.FailureLimit) && !edited
	return !stopped && !d.drainsRun() && len(d.left()) == 0
}

// drainsRun reports whether any node is being drained, is drained, or is waiting to become ready
// again.
func (d *decider) drainsRun() bool {
	for _, p := range d.status.Nodes {
		if p.Phase != tidekeeperv1.NodeFailed && IsRunning(p) {
			return true
		}
	}
	return false
}
