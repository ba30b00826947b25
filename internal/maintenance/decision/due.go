// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// mostMarked is the maximum number of nodes that one decision marks or unmarks as due, so that a
// decision about a large pool does not hold up the decisions about other NodeMaintenances.
const mostMarked = 500

// due marks the nodes that are still to be drained in this round, with the taint
// [tidekeeperv1.MaintenanceDueTaint]. Without the taint, the scheduler would place pods of drained
// nodes on nodes that are drained next, and these pods would be moved repeatedly.
type due struct {
	state *state
	// open is true if drains may begin now. Nodes are not marked while no drain may begin, such as
	// outside the windows.
	open bool
}

// mark marks nodes that have become due, and unmarks nodes that are no longer due. It leaves alone
// nodes that another client has cordoned or is draining. Nodes are marked only while drains run, and
// not before the nodes whose drain is recorded in the status are cordoned, because the patches would
// delay these drains. They stay marked until the next drain begins, so that a short wait for room
// causes no patches.
func (d *due) mark() {
	left := map[string]bool{}
	for _, name := range d.state.left() {
		left[name] = d.open
	}
	moving := d.state.drainsRun()
	for _, p := range d.state.status.Nodes {
		moving = moving && !isClaimed(p)
	}
	acted := map[string]bool{}
	for _, a := range d.state.out.Actions {
		acted[a.Node.Name] = true
	}
	marked := 0
	for _, name := range slices.Sorted(maps.Keys(d.state.Nodes)) {
		n := d.state.Nodes[name]
		kind := UnmarkDue
		switch {
		case acted[name] || n.Deleting:
			continue
		case n.DueFor == "" && left[name] && moving && !n.Unschedulable && n.Foreign == "" && n.CordonedFor == "":
			kind = MarkDue
		case n.DueFor != string(d.state.Maintenance.UID) || left[name] || isClaimed(d.state.status.Nodes[name]):
			continue
		}
		if marked == mostMarked {
			d.state.wake(d.state.Now)
			return
		}
		marked++
		d.state.act(kind, n)
	}
}

// isClaimed reports whether the drain of a node is recorded in the status, but not yet that the
// node is cordoned.
func isClaimed(p tidekeeperv1.NodeProgress) bool {
	return p.Phase == tidekeeperv1.NodeDraining && !p.Cordoned
}
