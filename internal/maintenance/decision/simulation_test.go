// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// noon is the time at which simulations begin.
var noon = time.Date(2026, time.June, 9, 12, 0, 0, 0, time.UTC)

// cluster simulates the API server, with a NodeMaintenance and nodes.
type cluster struct {
	m      *tidekeeperv1.NodeMaintenance
	nodes  map[string]Node
	empty  map[string]bool // nodes whose pods have left
	now    time.Time
	frozen bool
	full   bool // no node has a place for the pods of another node
	// deselected is the name of a node that the spec does not select.
	deselected string
	// starts counts the drains of each node, by name.
	starts map[string]int
	// cordons counts how often each node was cordoned.
	cordons map[string]int
}

func newCluster(names ...string) *cluster {
	c := &cluster{
		m: &tidekeeperv1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m-1", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
			Spec:       tidekeeperv1.NodeMaintenanceSpec{DrainTimeoutSeconds: 600, MaintenanceTimeoutSeconds: 3600, FailureLimit: 100},
		},
		nodes: map[string]Node{}, empty: map[string]bool{}, now: noon, starts: map[string]int{}, cordons: map[string]int{},
	}
	for _, name := range names {
		c.nodes[name] = Node{Name: name, UID: types.UID(name), Ready: true, Created: noon.Add(-time.Hour), BootID: "1", KubeletVersion: "v1.37.2"}
	}
	return c
}

// decide makes a decision about the stored objects.
func (c *cluster) decide() Output {
	in := Input{Maintenance: c.m.DeepCopy(), Now: c.now, Nodes: maps.Clone(c.nodes), Drains: map[string]Drain{}, HasPlace: func(string, []string) bool { return !c.full }}
	in.Selected = slices.DeleteFunc(slices.Sorted(maps.Keys(c.nodes)), func(name string) bool { return name == c.deselected })
	if c.frozen {
		in.Frozen, in.FrozenUntil = "Freeze x", c.now.Add(time.Hour)
	}
	for name, n := range c.nodes {
		in.Drains[name] = Drain{UID: n.UID, Empty: c.empty[name], Settled: true}
	}
	return Decide(in)
}

// set changes the facts about a node.
func (c *cluster) set(name string, change func(*Node)) {
	n := c.nodes[name]
	change(&n)
	c.nodes[name] = n
}

// apply carries out an action on a node.
func (c *cluster) apply(a Action) {
	n, exists := c.nodes[a.Node.Name]
	if !exists || n.UID != a.Node.UID {
		return
	}
	switch a.Kind {
	case Cordon:
		if n.CordonedFor == "" {
			c.cordons[a.Node.Name]++
		}
		n.Unschedulable, n.CordonedFor, n.DueFor = true, string(c.m.UID), ""
	case MarkDrained:
		n.DrainedFor, n.Labeled = c.m.Name, true
	case Uncordon:
		n.Unschedulable, n.CordonedFor, n.DrainedFor, n.DueFor, n.Labeled = false, "", "", "", false
	case Clean:
		n.CordonedFor, n.DrainedFor, n.DueFor, n.Labeled = "", "", "", false
	case MarkDue:
		n.DueFor = string(c.m.UID)
	case UnmarkDue:
		n.DueFor = ""
	}
	c.nodes[a.Node.Name] = n
}

// reconcile makes a decision and carries it out. The simulated manager is killed after the given
// number of writes, unless it is negative. reconcile reports whether the manager wrote anything.
func (c *cluster) reconcile(writes int) (wrote bool) {
	out := c.decide()
	if !equalStatus(&c.m.Status, &out.Status) {
		if writes == 0 {
			return true
		}
		writes--
		for name, p := range out.Status.Nodes {
			if before, known := c.m.Status.Nodes[name]; !known || !before.StartTime.Equal(&p.StartTime) {
				c.starts[name]++
			}
		}
		c.m.Status, wrote = out.Status, true
	}
	for _, a := range out.Actions {
		if writes == 0 {
			return true
		}
		writes--
		c.apply(a)
		wrote = true
	}
	return wrote
}

func equalStatus(a, b *tidekeeperv1.NodeMaintenanceStatus) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

// settle reconciles until a reconcile writes nothing.
func (c *cluster) settle(t interface{ Fatalf(string, ...any) }) {
	for range 100 {
		if !c.reconcile(-1) {
			return
		}
	}
	t.Fatalf("it does not come to rest: %+v", c.m.Status)
}

// TestAnyCourse checks random sequences of events in which managers are killed between any two
// writes. The number of cordoned nodes must never exceed the limit of unavailable nodes, no node
// may be drained twice in a round, and at the end only nodes in maintenance may have annotations
// and labels of a NodeMaintenance.
func TestAnyCourse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCluster("a", "b", "c", "d")
		limit := rapid.IntRange(1, 3).Draw(r, "limit")
		c.m.Spec.MaxUnavailable = &intstr.IntOrString{IntVal: int32(limit)}
		c.m.Spec.Until = rapid.SampledFrom([]tidekeeperv1.MaintenanceEnd{tidekeeperv1.UntilAnnotationRemoved, tidekeeperv1.UntilRebooted, tidekeeperv1.UntilDrained}).Draw(r, "until")
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			name := names.Draw(r, "node")
			change := func(f func(n *Node)) {
				if n, exists := c.nodes[name]; exists {
					f(&n)
					c.nodes[name] = n
				}
			}
			switch rapid.IntRange(0, 11).Draw(r, "event") {
			case 0, 1, 2, 3, 4:
				c.reconcile(rapid.IntRange(-1, 3).Draw(r, "writes"))
			case 5:
				c.empty[name] = true
			case 6:
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(r, "seconds")) * time.Second)
			case 7:
				change(func(n *Node) { n.Ready = !n.Ready })
			case 8: // Another client uncordons the node by hand.
				change(func(n *Node) { n.Unschedulable = false })
			case 9:
				change(func(n *Node) { n.DrainedFor, n.BootID = "", fmt.Sprint(rapid.IntRange(1, 9).Draw(r, "boot")) })
			case 10:
				c.frozen = !c.frozen
			case 11:
				delete(c.nodes, name)
			}
			cordoned := 0
			for _, n := range c.nodes {
				if n.CordonedFor == string(c.m.UID) && n.Unschedulable {
					cordoned++
				}
			}
			for name, n := range c.nodes {
				if n.DueFor != "" && n.CordonedFor != "" {
					r.Fatalf("node %s is cordoned, and still marked as due", name)
				}
			}
			if cordoned > limit {
				r.Fatalf("%d nodes are cordoned, the limit is %d: %+v", cordoned, limit, c.nodes)
			}
		}
		// From here on all goes well.
		c.frozen = false
		for range 20 {
			for name, n := range c.nodes {
				n.Ready, c.empty[name] = true, true
				if n.DrainedFor != "" {
					n.DrainedFor, n.BootID = "", n.BootID+"1"
				}
				c.nodes[name] = n
			}
			c.settle(r)
			c.now = c.now.Add(time.Minute)
		}
		for name, n := range c.nodes {
			if n.CordonedFor != "" || n.Unschedulable || n.DrainedFor != "" || n.DueFor != "" {
				r.Fatalf("node %s still has marks: %+v; %+v", name, n, c.m.Status.Nodes[name])
			}
			if p, begun := c.m.Status.Nodes[name]; !begun || IsRunning(p) {
				r.Fatalf("node %s has not been maintained: %+v", name, p)
			}
		}
		for name, count := range c.starts {
			// A drain that is recorded in the status may be given up before the node is patched,
			// and begin again.
			if count > 1 && c.cordons[name] > 1 {
				r.Fatalf("node %s was cordoned %d times", name, c.cordons[name])
			}
		}
	})
}
