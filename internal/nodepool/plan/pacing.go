// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"
)

// NodeEviction is a node in the eyes of a pool that has NoExecute taints.
type NodeEviction struct {
	Node string
	// Member: the node is the pool's. Others count only for the cluster's share.
	Member bool
	// Waiting: a taint of the pool is held back from this node.
	Waiting bool
	// Allowed: the node may be tainted, and is not yet.
	Allowed bool
	// Failing: the last write of the node was refused.
	Failing bool
	// Since is when the last taint of a pool that evicts was put on the node; zero
	// if none was.
	Since time.Time
	// AffectedPods is the number of running pods that the taints drive out: all of them
	// of a node that waits; of one that has the taints, those that do not tolerate
	// them for longer than a node is waited for.
	AffectedPods int
}

// MaxEvictionDuration is the longest time for which a node counts as being emptied,
// unless Options.NoExecuteInterval is longer.
const MaxEvictionDuration = 10 * time.Minute

// Pace is how fast NoExecute taints reach nodes.
type Pace struct {
	// Share is how many percent of a pool's nodes, and of the cluster's, may be
	// emptied at a time; at least one of each.
	Share int
	// MinDuration is for how long at least a node counts as being emptied, patience for
	// how long at most.
	MinDuration, MaxDuration time.Duration
}

// NextEvictions returns the nodes that a NoExecute taint may be put on now, so
// that at most the share of the pool's nodes, and of the nodes of the cluster (of
// which there are total), are being emptied at any time. A node is being emptied
// until its victims are gone and settle has passed since the taint was put on it,
// but no longer than patience: a pod that does not go, be it that its owner does
// not want it to or that its node is dead, must not hold up all others. Nodes
// without victims lose nothing and never wait.
//
// It also returns after how long to ask again if nothing else happens, or 0 if
// no node waits. Everything is told from the nodes themselves, so a restarted
// or second manager comes to the same answer.
func NextEvictions(nodes []NodeEviction, members, total int, p Pace, now time.Time) (admit []string, again time.Duration) {
	ours, all := max(1, members*p.Share/100), max(1, total*p.Share/100)
	waiting := []NodeEviction{}
	for _, n := range nodes {
		switch {
		case n.Waiting && n.AffectedPods == 0:
			admit = append(admit, n.Node)
		case n.Waiting && Within(n.Since, p.MinDuration, now):
			// It is being emptied already, and counts, for another taint; one
			// more makes no second node of it.
			admit = append(admit, n.Node)
			ours--
			all--
		case n.Waiting:
			waiting = append(waiting, n)
		case n.Allowed || Within(n.Since, p.MinDuration, now) || n.AffectedPods > 0 && Within(n.Since, p.MaxDuration, now):
			all--
			if n.Member {
				ours--
			}
		}
	}
	// The emptiest first: progress is made where it hurts least. Those that could
	// not be written come last, so that they keep nobody waiting.
	slices.SortFunc(waiting, func(a, b NodeEviction) int {
		if a.Failing != b.Failing {
			if a.Failing {
				return +1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.AffectedPods, b.AffectedPods), cmp.Compare(a.Node, b.Node))
	})
	taken := min(max(min(ours, all), 0), len(waiting))
	for _, n := range waiting[:taken] {
		admit = append(admit, n.Node)
	}
	if taken < len(waiting) {
		again = max(p.MinDuration/4, time.Second)
	}
	slices.Sort(admit)
	return admit, again
}

// Within reports whether less than so long has passed since a node was tainted. A
// time that lies further ahead than the leaders' clocks may reasonably differ was
// written by a clock that was wrong, and set back since: to wait for it would hold
// up the pool for as long as it was wrong by.
func Within(since time.Time, long time.Duration, now time.Time) bool {
	return now.Sub(since).Abs() < long
}
