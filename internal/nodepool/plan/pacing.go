// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"
)

// NodeEviction describes the progress of evictions by a pool's NoExecute taints on a node.
type NodeEviction struct {
	Node string
	// Member is true if the node is a member of the pool. Other nodes count only towards the share
	// of the cluster's nodes that may be evicting pods at the same time.
	Member bool
	// Waiting is true if the node lacks a NoExecute taint of the pool, and still waits for
	// permission to get the taint or to be closed to new pods for it.
	Waiting bool
	// Allowed is true if the node has been permitted to get its NoExecute taint but does not have
	// the taint yet.
	Allowed bool
	// Failing is true if the last write to the node failed.
	Failing bool
	// Since is the time at which the node last got a NoExecute taint of a pool, or was last closed
	// to new pods for such a taint. It is zero if neither has happened.
	Since time.Time
	// AffectedPods is the number of running pods that the NoExecute taints evict from the node. For
	// a waiting node, it includes pods that are evicted after any delay. For other nodes, it
	// includes only pods that are evicted within Pace.MaxDuration.
	AffectedPods int
}

// MaxEvictionDuration is the default of Pace.MaxDuration. It is overridden by a longer
// Options.NoExecuteInterval.
const MaxEvictionDuration = 10 * time.Minute

// Pace configures how fast NoExecute taints are added to nodes.
type Pace struct {
	// Share is the percentage of a pool's nodes, and of the cluster's nodes, that may be evicting
	// pods at the same time. The resulting number of nodes is rounded down, but is at least 1.
	Share int
	// MinDuration and MaxDuration limit the time for which a tainted node counts as evicting pods.
	MinDuration, MaxDuration time.Duration
}

// NextEvictions returns the nodes that may get a NoExecute taint now. At the same time, pods may be
// evicted only from p.Share percent of the pool's nodes, whose number is `members`, and of the
// cluster's nodes, whose number is `total`. Nodes without affected pods never wait.
//
// A tainted node counts as evicting pods for at least p.MinDuration and until no affected pods
// remain, but for at most p.MaxDuration. Without this maximum, a pod that does not terminate,
// because its node is dead or its owner prevents it, would hold up all other nodes.
//
// again is the time after which to call NextEvictions again even if nothing changes, or 0 if no
// node waits. All input is derived from the state of the nodes, so a restarted or second manager
// computes the same result.
func NextEvictions(nodes []NodeEviction, members, total int, p Pace, now time.Time) (allowed []string, again time.Duration) {
	ours, all := max(1, members*p.Share/100), max(1, total*p.Share/100)
	waiting := []NodeEviction{}
	for _, n := range nodes {
		switch {
		case n.Waiting && n.AffectedPods == 0:
			allowed = append(allowed, n.Node)
		case n.Waiting && p.justTainted(n, now):
			// Another NoExecute taint is already evicting pods from this node. The node therefore
			// counts as evicting in any case, and need not wait.
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
	// Nodes with the fewest affected pods come first. Nodes whose last write failed come last, so
	// that they do not delay other nodes.
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

// justTainted reports whether the node got its taint so recently that p.MinDuration may still be
// running. A second is added because the API truncates a taint's timeAdded to whole seconds.
func (p Pace) justTainted(n NodeEviction, now time.Time) bool {
	return p.MinDuration > 0 && Within(n.Since, p.MinDuration+time.Second, now)
}

// Within reports whether the times `since` and `now` are less than `duration` apart, in either
// order. If a wrong clock has set `since` to a time further in the future than that, Within
// returns false, because the pool would otherwise have to wait until that time.
func Within(since time.Time, duration time.Duration, now time.Time) bool {
	return now.Sub(since).Abs() < duration
}
