// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// dueNodes returns the names of the nodes that are marked as due for the NodeMaintenance.
func dueNodes(c *cluster) (names []string) {
	for name, n := range c.nodes {
		if n.DueFor == string(c.m.UID) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestDue checks which nodes are marked as due after a change of a round in which node a is being
// drained, and b and c are due.
func TestDue(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*cluster)
		want   []string
	}{
		{"no change", func(*cluster) {}, []string{"b", "c"}},
		{"the next drain begins", func(c *cluster) { c.empty["a"], c.m.Spec.Until = true, tidekeeperv1.UntilDrained }, []string{"c"}},
		{"the next node has no place for its pods", func(c *cluster) {
			c.empty["a"], c.m.Spec.Until, c.full = true, tidekeeperv1.UntilDrained, true
		}, []string{"b", "c"}},
		{"frozen", func(c *cluster) { c.frozen = true }, nil},
		{"suspended", func(c *cluster) { c.m.Spec.Suspend = true }, nil},
		{"an invalid schedule", func(c *cluster) { c.m.Spec.Schedule = "x" }, nil},
		{"the window has closed", func(c *cluster) {
			c.m.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 22 * * *", DurationSeconds: 3600}}
		}, nil},
		{"the drain fails", func(c *cluster) { c.m.Spec.FailureLimit, c.now = 1, noon.Add(time.Hour) }, nil},
		{"a node leaves the selection", func(c *cluster) { c.deselected = "b" }, []string{"c"}},
		{"a node is deleted", func(c *cluster) { delete(c.nodes, "b") }, []string{"c"}},
		{"a node joins", func(c *cluster) {
			c.nodes["d"] = Node{Name: "d", UID: "d", Ready: true, Created: noon.Add(time.Minute)}
		}, []string{"b", "c"}},
		{"another client has cordoned a node", func(c *cluster) {
			c.set("b", func(n *Node) { n.DueFor, n.Unschedulable = "", true })
		}, []string{"c"}},
		{"another client cordons a node that is due", func(c *cluster) { c.set("b", func(n *Node) { n.Unschedulable = true }) }, []string{"b", "c"}},
		{"another client removes the taint", func(c *cluster) { c.set("c", func(n *Node) { n.DueFor = "" }) }, []string{"b", "c"}},
		{"a node is due for another NodeMaintenance", func(c *cluster) { c.set("b", func(n *Node) { n.DueFor = "other" }) }, []string{"c"}},
	} {
		c := newCluster("a", "b", "c")
		c.settle(t)
		if got := dueNodes(c); !slices.Equal(got, []string{"b", "c"}) {
			t.Fatalf("%q are due while a is being drained", got)
		}
		tc.change(c)
		c.settle(t)
		if got := dueNodes(c); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q are due, want %q", tc.name, got, tc.want)
		}
	}
}

// TestDueOfManyNodes checks that no node is marked as due before the first node is cordoned, that one
// decision marks a bounded number of nodes, and that the next decision follows at once.
func TestDueOfManyNodes(t *testing.T) {
	c := newCluster()
	for i := range mostMarked + 2 {
		name := fmt.Sprintf("n%04d", i)
		c.nodes[name] = Node{Name: name, UID: types.UID(name), Ready: true, Created: noon.Add(-time.Hour)}
	}
	for c.nodes["n0000"].CordonedFor == "" {
		if c.reconcile(-1); len(dueNodes(c)) > 0 {
			t.Fatal("nodes are marked as due before the first node is cordoned")
		}
	}
	out := c.decide()
	if !out.Wake.Equal(c.now) {
		t.Errorf("the next decision is due at %s, want %s", out.Wake, c.now)
	}
	for range 3 {
		before := len(dueNodes(c))
		c.reconcile(-1)
		if marked := len(dueNodes(c)) - before; marked > mostMarked {
			t.Errorf("one decision marked %d nodes", marked)
		}
	}
	if got := len(dueNodes(c)); got != mostMarked+1 {
		t.Errorf("%d nodes are due, want %d", got, mostMarked+1)
	}
}

// TestNoneDueWithoutRoom checks that no node is marked as due while the first drain waits for room.
func TestNoneDueWithoutRoom(t *testing.T) {
	c := newCluster("a", "b")
	c.full = true
	c.settle(t)
	if got := dueNodes(c); len(got) > 0 {
		t.Errorf("%q are due", got)
	}
}
