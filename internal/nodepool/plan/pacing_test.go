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

const evictionSettle = time.Minute

// waits, isAdmitted and tainted make the kinds of node that a pool with a
// NoExecute taint has.
func waits(node string, victims int) plan.NodeEviction {
	return plan.NodeEviction{Node: node, Waiting: true, AffectedPods: victims}
}

// isAdmitted: nobody has counted the victims of a node that is admitted; that
// it is admitted must be enough.
func isAdmitted(node string) plan.NodeEviction { return plan.NodeEviction{Node: node, Allowed: true} }

func tainted(node string, ago time.Duration, victims int) plan.NodeEviction {
	return plan.NodeEviction{Node: node, Since: objects.PatchTime.Add(-ago), AffectedPods: victims}
}

// next asks for a pool that has all the nodes, in a cluster that is much larger.
func next(nodes []plan.NodeEviction, share int, settle, patience time.Duration, now time.Time) ([]string, time.Duration) {
	for i := range nodes {
		nodes[i].Member = true
	}
	return plan.NextEvictions(nodes, len(nodes), 100*len(nodes)+100, plan.Pace{share, settle, patience}, now)
}

func TestNextEvictions(t *testing.T) {
	const long = 2 * evictionSettle
	for _, tc := range []struct {
		name  string
		nodes []plan.NodeEviction
		share int
		admit []string
		again time.Duration
	}{
		{name: "no nodes, nothing to do", share: 50},
		{
			name:  "nobody waits, nothing to do",
			nodes: []plan.NodeEviction{tainted("a", long, 0), tainted("b", 0, 4)}, share: 50,
		},
		{
			name:  "a quarter of four is one: the first, and the others wait",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1), waits("d", 1)}, share: 25,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share of less than one node is one node",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1)}, share: 10,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "no share at all is one node",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1)}, share: 0,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a share is rounded down",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1), waits("d", 1), waits("e", 1)}, share: 50,
			admit: []string{"a", "b"}, again: 15 * time.Second,
		},
		{
			name:  "the share is of all the pool's nodes, also those that are done",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1), waits("c", 1), tainted("d", long, 0)}, share: 50,
			admit: []string{"a", "b"}, again: 15 * time.Second,
		},
		{
			name:  "if all may go, nobody waits and nothing is to be asked again",
			nodes: []plan.NodeEviction{waits("a", 1), waits("b", 1)}, share: 100,
			admit: []string{"a", "b"},
		},
		{
			name:  "the emptiest goes first",
			nodes: []plan.NodeEviction{waits("a", 9), waits("b", 2), waits("c", 5)}, share: 67,
			admit: []string{"b", "c"}, again: 15 * time.Second,
		},
		{
			name:  "nodes without victims never wait, and take nobody's turn",
			nodes: []plan.NodeEviction{waits("a", 0), waits("b", 5), waits("c", 0), waits("d", 5)}, share: 25,
			admit: []string{"a", "b", "c"}, again: 15 * time.Second,
		},
		{
			name:  "nor do they when the share is spent",
			nodes: []plan.NodeEviction{waits("a", 0), isAdmitted("b"), waits("c", 1)}, share: 25,
			admit: []string{"a"}, again: 15 * time.Second,
		},
		{
			name:  "a node that is admitted but not tainted yet counts",
			nodes: []plan.NodeEviction{isAdmitted("a"), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "a node counts until its victims are gone",
			nodes: []plan.NodeEviction{tainted("a", long, 1), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "but nobody is waited for without end, as a finalizer or a dead node would have it",
			nodes: []plan.NodeEviction{tainted("a", plan.MaxEvictionDuration, 1), waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "a node that could not be written goes last, and keeps nobody waiting",
			nodes: []plan.NodeEviction{{Node: "a", Waiting: true, AffectedPods: 1, Failing: true}, waits("b", 9)}, share: 50,
			admit: []string{"b"}, again: 15 * time.Second,
		},
		{
			name:  "and until it has settled, also if its victims are gone: they have to start elsewhere",
			nodes: []plan.NodeEviction{tainted("a", evictionSettle-time.Second, 0), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "settled and empty, it counts no more",
			nodes: []plan.NodeEviction{tainted("a", evictionSettle, 0), waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "a node whose taint does not say when it was added counts by its victims alone",
			nodes: []plan.NodeEviction{{Node: "a"}, waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "the clock of the manager before was a little ahead: its last node counts",
			nodes: []plan.NodeEviction{tainted("a", -2*time.Second, 0), waits("b", 1)}, share: 50,
			again: 15 * time.Second,
		},
		{
			name:  "a time far ahead is of a clock that was wrong, and holds nothing up",
			nodes: []plan.NodeEviction{tainted("a", -3*time.Hour, 0), waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "nor do its victims: for how long they have had to go is not known",
			nodes: []plan.NodeEviction{tainted("a", -3*time.Hour, 2), waits("b", 1)}, share: 50,
			admit: []string{"b"},
		},
		{
			name:  "more nodes than the share may be under way, for instance after it was made smaller",
			nodes: []plan.NodeEviction{tainted("a", 0, 1), tainted("b", 0, 1), tainted("c", 0, 1), waits("d", 1)}, share: 25,
			again: 15 * time.Second,
		},
		{
			name: "a node that is being emptied gets the pool's next taint at once, and no second node beside it",
			nodes: []plan.NodeEviction{
				{Node: "b", Waiting: true, AffectedPods: 5, Since: objects.PatchTime.Add(-time.Second)},
				waits("a", 1),
			}, share: 50,
			admit: []string{"b"}, again: 15 * time.Second,
		},
		{
			name: "a node that was emptied long ago waits its turn for the pool's next taint",
			nodes: []plan.NodeEviction{
				{Node: "b", Waiting: true, AffectedPods: 5, Since: objects.PatchTime.Add(-long)},
				waits("a", 1),
			}, share: 50,
			admit: []string{"a"}, again: 15 * time.Second,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 {
				admit, again := next(slices.Clone(tc.nodes), tc.share, evictionSettle, plan.MaxEvictionDuration, objects.PatchTime)
				if diff := cmp.Diff(tc.admit, admit, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("admitted (-want +got):\n%s", diff)
				}
				if again != tc.again {
					t.Errorf("ask again after %v; want %v", again, tc.again)
				}
				slices.Reverse(tc.nodes) // The order of the nodes means nothing.
			}
		})
	}
}

// A short settling time must not become a busy loop.
func TestNextEvictionsAsksAtMostEverySecond(t *testing.T) {
	if _, again := next([]plan.NodeEviction{waits("a", 1), waits("b", 1)}, 1, 0, plan.MaxEvictionDuration, objects.PatchTime); again != time.Second {
		t.Errorf("ask again after %v; want 1s", again)
	}
}

// However pods come and go and whenever the question is asked, never more
// nodes than the share, or one, are being emptied at a time; and in the end
// every node has the taint.
func TestNextEvictionsIsBoundedAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(0, 120).Draw(t, "share")
		nodes := make([]plan.NodeEviction, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = waits(fmt.Sprintf("n%02d", i), rapid.IntRange(0, 3).Draw(t, "pods"))
		}
		bound := max(1, len(nodes)*share/100)
		now := objects.PatchTime
		// emptied are the nodes that had victims when they were admitted.
		emptied := map[string]bool{}

		for turn := 0; slices.ContainsFunc(nodes, func(n plan.NodeEviction) bool { return n.Waiting || n.Allowed }); turn++ {
			if turn > 500 {
				t.Fatalf("not every node is reached: %+v", nodes)
			}
			restless := turn < 50
			asked := slices.Clone(nodes)
			for i := range asked {
				if asked[i].Allowed {
					asked[i].AffectedPods = 0 // Nobody counts them; see isAdmitted.
				}
			}
			admit, again := next(rapid.Permutation(asked).Draw(t, "order"), share, evictionSettle, 1000*time.Hour, now)
			for _, name := range admit {
				i := slices.IndexFunc(nodes, func(n plan.NodeEviction) bool { return n.Node == name })
				if !nodes[i].Waiting {
					t.Fatalf("node %s is admitted, which does not wait", name)
				}
				nodes[i].Waiting, nodes[i].Allowed = false, true
				emptied[name] = nodes[i].AffectedPods > 0
			}
			if left := slices.ContainsFunc(nodes, func(n plan.NodeEviction) bool { return n.Waiting }); left != (again > 0) {
				t.Fatalf("ask again after %v, and nodes wait: %v", again, left)
			}

			busy := []string{}
			for _, n := range nodes {
				if emptied[n.Node] && (n.Allowed || !n.Waiting && (n.AffectedPods > 0 || now.Sub(n.Since) < evictionSettle)) {
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
				case n.Allowed && (!restless || rapid.Bool().Draw(t, "written")):
					n.Allowed, n.Since = false, now
				case n.Waiting && restless:
					n.AffectedPods = max(0, n.AffectedPods+rapid.IntRange(-1, 1).Draw(t, "pods come and go"))
				case !n.Waiting && !n.Allowed && n.AffectedPods > 0 && (!restless || rapid.Bool().Draw(t, "one pod ends")):
					n.AffectedPods--
				}
			}
		}
	})
}

// Many pools of one node each are no more at once than one pool of many.
func TestNextEvictionsShareTheCluster(t *testing.T) {
	p := plan.Pace{Share: 20, MinDuration: evictionSettle, MaxDuration: plan.MaxEvictionDuration}
	elsewhere := func(e plan.NodeEviction) plan.NodeEviction { e.Member = false; return e }
	ours := plan.NodeEviction{Node: "ours", Member: true, Waiting: true, AffectedPods: 1}
	for _, tc := range []struct {
		name   string
		others []plan.NodeEviction
		total  int
		admit  []string
	}{
		{"nothing else is emptied", nil, 5, []string{"ours"}},
		{"one of five is the share, and it is taken", []plan.NodeEviction{elsewhere(tainted("a", time.Second, 1))}, 5, nil},
		{"as is one that is admitted", []plan.NodeEviction{elsewhere(isAdmitted("a"))}, 5, nil},
		{"of ten nodes two may go", []plan.NodeEviction{elsewhere(tainted("a", time.Second, 1))}, 10, []string{"ours"}},
		{"one that is over with counts no more", []plan.NodeEviction{elsewhere(tainted("a", evictionSettle, 0))}, 5, []string{"ours"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			admit, again := plan.NextEvictions(append(tc.others, ours), 1, tc.total, p, objects.PatchTime)
			if diff := cmp.Diff(tc.admit, admit, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
			if (len(admit) == 0) != (again > 0) {
				t.Errorf("ask again after %s", again)
			}
		})
	}
}
