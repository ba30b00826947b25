// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"
)

// NodeEviction is the state of a node with respect to the NoExecute taints of a pool.
type NodeEviction struct {
	Node string
	// Member is true if the node is a member of the pool. Other nodes count only towards the
	// cluster's share.
	Member bool
	// Waiting is true if the node waits for a NoExecute taint of the pool.
	Waiting bool
	// Allowed is true if the node may get its taint, and does not have it yet.
	Allowed bool
	// Failing is true if the last write of the node failed.
	Failing bool
	// Since is when a pool last put a NoExecute taint on the node; zero if none did.
	Since time.Time
	// AffectedPods is the number of running pods that the taints evict. If the node waits, pods
	// evicted after any delay count; if it has the taints, only pods evicted within
	// Pace.MaxDuration.
	AffectedPods int
}

// MaxEvictionDuration is the maximum time for which a node counts as being emptied, unless
// Options.NoExecuteInterval is longer.
const MaxEvictionDuration = 10 * time.Minute

// Pace limits how fast NoExecute taints are added to nodes.
type Pace struct {
	// Share is the percentage of a pool's nodes, and of the cluster's nodes, that may be
	// emptied at the same time; at least one node of each.
	Share int
	// MinDuration and MaxDuration are the minimum and maximum time for which a node counts
	// as being emptied.
	MinDuration, MaxDuration time.Duration
}

// NextEvictions returns the nodes that may get a NoExecute taint now, so that at any time no
// more than the share of the pool's nodes (members) and of the cluster's (total) are being
// emptied. A node is being emptied until its affected pods are gone and p.MinDuration has
// passed since it got the taint, but no longer than p.MaxDuration: a pod that does not
// terminate, because its node is dead or its owner prevents it, must not hold up all other
// nodes. Nodes without affected pods never wait.
//
// again is the time after which to ask again if nothing else happens, or 0 if no node waits.
// All input comes from the nodes themselves, so that a restarted or second manager reaches the
// same result.
func NextEvictions(nodes []NodeEviction, members, total int, p Pace, now time.Time) (allowed []string, again time.Duration) {
	ours, all := max(1, members*p.Share/100), max(1, total*p.Share/100)
	waiting := []NodeEviction{}
	for _, n := range nodes {
		switch {
		case n.Waiting && n.AffectedPods == 0:
			allowed = append(allowed, n.Node)
		case n.Waiting && p.justTainted(n, now):
			// The node is already being emptied because of another taint, and counts once.
			allowed = append(allowed, n.Node)
			ours--
			all--
		case n.Waiting:
			waiting = append(waiting, n)
		case n.Allowed || p.justTainted(n, now) || n.AffectedPods > 0 && Within(n.Since, p.MaxDuration, now):
			all--
			if n.Member {
				ours--
			}
		}
	}
	// Nodes with the fewest affected pods come first, and nodes whose last write failed
	// come last, so that they do not hold up others.
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
		allowed = append(allowed, n.Node)
	}
	if taken < len(waiting) {
		again = max(p.MinDuration/4, time.Second)
	}
	slices.Sort(allowed)
	return allowed, again
}

// justTainted reports whether p.MinDuration may not have passed since the node got its taint.
// One second is added, because the API rounds the time of a taint down to whole seconds.
func (p Pace) justTainted(n NodeEviction, now time.Time) bool {
	return p.MinDuration > 0 && Within(n.Since, p.MinDuration+time.Second, now)
}

// Within reports whether a node was tainted less than the given duration ago. A time that is at
// least as far in the future was written while the clock was wrong. Such a time does not count,
// since the pool would otherwise wait until then.
func Within(since time.Time, duration time.Duration, now time.Time) bool {
	return now.Sub(since).Abs() < duration
}
