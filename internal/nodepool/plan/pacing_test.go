// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

const minEviction = time.Minute

// waits returns a member node that waits for a NoExecute taint and has the given number of affected
// pods.
func waits(node string, pods int) plan.NodeEviction {
	return plan.NodeEviction{Node: node, Waiting: true, AffectedPods: pods}
}

// isAllowed returns a node that has been permitted to get its taint. AffectedPods is not set, since
// a permitted node counts as evicting in any case.
func isAllowed(node string) plan.NodeEviction { return plan.NodeEviction{Node: node, Allowed: true} }

func tainted(node string, ago time.Duration, pods int) plan.NodeEviction {
	return plan.NodeEviction{Node: node, Since: objects.PatchTime.Add(-ago), AffectedPods: pods}
}

// next calls NextEvictions for a pool that consists of the given nodes and is part of a much larger
// cluster.
func next(nodes []plan.NodeEviction, share int, minDuration, maxDuration time.Duration, now time.Time) ([]string, time.Duration) {
	for i := range nodes {
		nodes[i].Member = true
	}
	return plan.NextEvictions(nodes, len(nodes), 100*len(nodes)+100, plan.Pace{share, minDuration, maxDuration}, now)
}

func TestNextEvictions(t *testing.T) {
	const long = 2 * minEviction
	for _, tc := range []struct {
		name    string
		nodes   []plan.NodeEviction
		share   int
		allowed []string
		again   time.Duration
	}{
		{name: "no nodes, nothing to do", share: 50},
		{
			name:  "no node waits, nothing to do",
			nodes: []plan.NodeEviction{tainted("a", long, 0), tainted("b", 0, 4)}, share: 50,
		},
		{
			name:  "a quarter of four is one: the first, and the others wait",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1), waits("d", 1)}, share: 25,
			allowed: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share of less than one node is one node",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1)}, share: 10,
			allowed: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share of 0 is one node",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1)}, share: 0,
			allowed: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share is rounded down",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1), waits("d", 1), waits("e", 1)}, share: 50,
			allowed: []string{"a", "b"}, again: 15 * time.Second,
		},
		{
			name:  "the share is of all the pool's nodes, including those that are done",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1), tainted("d", long, 0)}, share: 50,
			allowed: []string{"a", "b"}, again: 15 * time.Second,
		},
		{
			name:  "if all are allowed, no node waits and there is no need to ask again",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1)}, share: 100,
			allowed: []string{"a", "b"},
		},
		{
			name:  "the node with the fewest pods comes first",
			nodes: []plan.NodeEviction{waits("a", 9), waits("b", 2), waits("c", 5)}, share: 67,
			allowed: []string{"b", "c"}, again: 15 * time.Second,
		},
		{
			name:  "nodes without affected pods never wait, and do not count",
			nodes: []plan.NodeEviction{waits("a", 0), waits("b", 5), waits("c", 0), waits("d", 5)}, share: 25,
			allowed: []string{"a", "b", "c"}, again: 15 * time.Second,
		},
		{
			name:  "nor do they when the share is used up",
			nodes: []plan.NodeEviction{waits("a", 0), isAllowed("b"), waits("c", 1)}, share: 25,
			allowed: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a node that is allowed but not tainted yet counts",
			nodes: []plan.NodeEviction{isAllowed("a"), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "a node counts until its affected pods are gone",
			nodes: []plan.NodeEviction{tainted("a", long, 1), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "but not without end: a finalizer or a dead node may keep them",
			nodes: []plan.NodeEviction{tainted("a", plan.MaxEvictionDuration, 1), waits("b", 1)}, share: 50,
			allowed: []string{"b"},
		},
		{
			name:  "a node that could not be written comes last, and holds up no other",
			nodes: []plan.NodeEviction{{Node: "a", Waiting: true, AffectedPods: 1, Failing: true}, waits("b", 9)}, share: 50,
			allowed: []string{"b"}, again: 15 * time.Second,
		},
		{
			name:  "and for the minimum time, even if its pods are gone: they have to start elsewhere",
			nodes: []plan.NodeEviction{tainted("a", minEviction, 0), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "empty and after the minimum time, it no longer counts",
			nodes: []plan.NodeEviction{tainted("a", minEviction+time.Second, 0), waits("b", 1)}, share: 50,
			allowed: []string{"b"},
		},
		{
			name:  "a node whose taint has no time does not count",
			nodes: []plan.NodeEviction{{Node: "a"}, waits("b", 1)}, share: 50,
			allowed: []string{"b"},
		},
		{
			name:  "the clock of the previous manager was slightly ahead: its last node counts",
			nodes: []plan.NodeEviction{tainted("a", -2*time.Second, 0), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "a time far ahead is from a wrong clock, and does not count",
			nodes: []plan.NodeEviction{tainted("a", -3*time.Hour, 0), waits("b", 1)}, share: 50,
			allowed: []string{"b"},
		},
		{
			name:  "nor do the pods count: how long they have had to terminate is unknown",
			nodes: []plan.NodeEviction{tainted("a", -3*time.Hour, 2), waits("b", 1)}, share: 50,
			allowed: []string{"b"},
		},
		{
			name:  "more nodes than the share may be in progress, for instance after it was lowered",
			nodes: []plan.NodeEviction{tainted("a", 0, 1), tainted("b", 0, 1), tainted("c", 0, 1), waits("d", 1)}, share: 25,
			again: 15 * time.Second,
		},
		{
			name: "a node that is being emptied gets the pool's next taint at once, and still counts once",
			nodes: []plan.NodeEviction{
				{Node: "b", Waiting: true, AffectedPods: 5, Since: objects.PatchTime.Add(-time.Second)},
				waits("a", 1),
			}, share: 50,
			allowed: []string{"b"}, again: 15 * time.Second,
		},
		{
			name: "a node that was emptied long ago waits for its turn to get the pool's next taint",
			nodes: []plan.NodeEviction{
				{Node: "b", Waiting: true, AffectedPods: 5, Since: objects.PatchTime.Add(-long)},
				waits("a", 1),
			}, share: 50,
			allowed: []string{"a"}, again: 15 * time.Second,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 {
				allowed, again := next(slices.Clone(tc.nodes), tc.share, minEviction, plan.MaxEvictionDuration, objects.PatchTime)
				if diff := cmp.Diff(tc.allowed, allowed, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("allowed (-want +got):\n%s", diff)
				}
				if again != tc.again {
					t.Errorf("ask again after %v; want %v", again, tc.again)
				}
				slices.Reverse(tc.nodes) // The order of the nodes must not matter.
			}
		})
	}
}

// TestNextEvictionsAsksAtMostEverySecond checks that NextEvictions never requests another call
// within less than a second, so that a short minimum duration does not cause a busy loop.
func TestNextEvictionsAsksAtMostEverySecond(t *testing.T) {
	if _, again := next([]plan.NodeEviction{waits("a", 1), waits("b", 1)}, 1, 0, plan.MaxEvictionDuration, objects.PatchTime); again != time.Second {
		t.Errorf("ask again after %v; want 1s", again)
	}
}

// TestNextEvictionsIsBoundedAndEnds checks that, for any interleaving of pod changes and calls of
// NextEvictions, no more than the allowed share of nodes evicts pods at the same time, and that
// every node eventually gets the taint.
func TestNextEvictionsIsBoundedAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(0, 120).Draw(t, "share")
		nodes := make([]plan.NodeEviction, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = waits(fmt.Sprintf("n%02d", i), rapid.IntRange(0, 3).Draw(t, "pods"))
		}
		bound := max(1, len(nodes)*share/100)
		now := objects.PatchTime
		// emptied is the set of nodes that had affected pods when they were permitted to get the
		// taint.
		emptied := map[string]bool{}

		for turn := 0; slices.ContainsFunc(nodes, func(n plan.NodeEviction) bool { return n.Waiting || n.Allowed }); turn++ {
			if turn > 500 {
				t.Fatalf("not every node gets the taint: %+v", nodes)
			}
			changing := turn < 50
			input := slices.Clone(nodes)
			for i := range input {
				if input[i].Allowed {
					input[i].AffectedPods = 0 // as in isAllowed
				}
			}
			allowed, again := next(rapid.Permutation(input).Draw(t, "order"), share, minEviction, 1000*time.Hour, now)
			for _, name := range allowed {
				i := slices.IndexFunc(nodes, func(n plan.NodeEviction) bool { return n.Node == name })
				if !nodes[i].Waiting {
					t.Fatalf("node %s is allowed, which does not wait", name)
				}
				nodes[i].Waiting, nodes[i].Allowed = false, true
				emptied[name] = nodes[i].AffectedPods > 0
			}
			if left := slices.ContainsFunc(nodes, func(n plan.NodeEviction) bool { return n.Waiting }); left != (again > 0) {
				t.Fatalf("ask again after %v, but nodes wait: %v", again, left)
			}

			busy := []string{}
			for _, n := range nodes {
				if emptied[n.Node] && (n.Allowed || !n.Waiting && (n.AffectedPods > 0 || now.Sub(n.Since) < minEviction)) {
					busy = append(busy, n.Node)
				}
			}
			if len(busy) > bound {
				t.Fatalf("of %d nodes with a share of %d %%, %v are being emptied at once", len(nodes), share, busy)
			}

			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
			for i := range nodes {
				n := &nodes[i]
				switch {
				case n.Allowed && (!changing || rapid.Bool().Draw(t, "written")):
					n.Allowed, n.Since = false, now
				case n.Waiting && changing:
					n.AffectedPods = max(0, n.AffectedPods+rapid.IntRange(-1, 1).Draw(t, "pods come and go"))
				case !n.Waiting && !n.Allowed && n.AffectedPods > 0 && (!changing || rapid.Bool().Draw(t, "one pod ends")):
					n.AffectedPods--
				}
			}
		}
	})
}

// TestNextEvictionsShareTheCluster checks that the cluster-wide share also limits pools that have
// only one node each.
func TestNextEvictionsShareTheCluster(t *testing.T) {
	p := plan.Pace{Share: 20, MinDuration: minEviction, MaxDuration: plan.MaxEvictionDuration}
	elsewhere := func(e plan.NodeEviction) plan.NodeEviction { e.Member = false; return e }
	ours := plan.NodeEviction{Node: "ours", Member: true, Waiting: true, AffectedPods: 1}
	for _, tc := range []struct {
		name    string
		others  []plan.NodeEviction
		total   int
		allowed []string
	}{
		{"nothing else is emptied", nil, 5, []string{"ours"}},
		{"one of five is the share, and it is taken", []plan.NodeEviction{elsewhere(tainted("a", time.Second, 1))}, 5, nil},
		{"the same with one that is allowed", []plan.NodeEviction{elsewhere(isAllowed("a"))}, 5, nil},
		{"of ten nodes two are allowed", []plan.NodeEviction{elsewhere(tainted("a", time.Second, 1))}, 10, []string{"ours"}},
		{"one that is done no longer counts", []plan.NodeEviction{elsewhere(tainted("a", minEviction+time.Second, 0))}, 5, []string{"ours"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			allowed, again := plan.NextEvictions(append(tc.others, ours), 1, tc.total, p, objects.PatchTime)
			if diff := cmp.Diff(tc.allowed, allowed, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
			if (len(allowed) == 0) != (again > 0) {
				t.Errorf("ask again after %s", again)
			}
		})
	}
}
