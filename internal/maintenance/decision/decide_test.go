// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// begun returns the names of the nodes whose drain has begun, and the reason and message of Ready.
func begun(c *cluster) (names []string, reason, message string) {
	for name := range c.m.Status.Nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	ready := meta.FindStatusCondition(c.m.Status.Conditions, tidekeeperv1.ConditionReady)
	return names, ready.Reason, ready.Message
}

// TestStart checks which drains begin, and the reason if none begins.
func TestStart(t *testing.T) {
	change := func(name string, f func(*Node)) func(*cluster) {
		return func(c *cluster) {
			n := c.nodes[name]
			f(&n)
			c.nodes[name] = n
		}
	}
	for _, tc := range []struct {
		name    string
		change  func(*cluster)
		want    []string
		reason  string
		message string
	}{
		{"the first node", func(*cluster) {}, []string{"a"}, tidekeeperv1.ReasonMaintaining, "maintaining a"},
		{"a node that is not ready takes the place", change("b", func(n *Node) { n.Ready = false }), nil, tidekeeperv1.ReasonMaxUnavailable, "unavailable: b; the limit is 1"},
		{"a node that another client has cordoned", change("a", func(n *Node) { n.Unschedulable = true }), nil, tidekeeperv1.ReasonMaxUnavailable, "unavailable: a"},
		{"a node that another program drains", change("a", func(n *Node) { n.Foreign = "kured" }), nil, tidekeeperv1.ReasonMaxUnavailable, "unavailable: a"},
		{"a node of another maintenance", change("c", func(n *Node) { n.CordonedFor = "other" }), nil, tidekeeperv1.ReasonMaxUnavailable, "unavailable: c"},
		{"a new node", change("a", func(n *Node) { n.Created = noon.Add(time.Minute) }), []string{"b"}, tidekeeperv1.ReasonMaintaining, ""},
		{"suspended", func(c *cluster) { c.m.Spec.Suspend = true }, nil, tidekeeperv1.ReasonSuspended, "no drain begins"},
		{"frozen", func(c *cluster) { c.frozen = true }, nil, tidekeeperv1.ReasonFrozen, "Freeze x"},
		{"outside of the windows", func(c *cluster) {
			c.m.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 22 * * *", DurationSeconds: 3600}}
		}, nil, tidekeeperv1.ReasonWindowClosed, "2026-06-09T22:00:00Z"},
		{"in a window", func(c *cluster) {
			c.m.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 11 * * *", DurationSeconds: 7200}}
		}, []string{"a"}, tidekeeperv1.ReasonMaintaining, ""},
		{"before the first round", func(c *cluster) { c.m.Spec.Schedule = "0 22 * * *" }, nil, tidekeeperv1.ReasonScheduled, "first round"},
		{"an invalid schedule", func(c *cluster) { c.m.Spec.Schedule = "x" }, nil, tidekeeperv1.ReasonInvalidSchedule, ""},
		{"after too many failures", func(c *cluster) {
			c.m.Spec.FailureLimit, c.m.Status.ObservedGeneration = 1, 1
			c.m.Status.Nodes = map[string]tidekeeperv1.NodeProgress{"a": {UID: "a", Phase: tidekeeperv1.NodeFailed}}
		}, []string{"a"}, tidekeeperv1.ReasonFailureLimit, "1 nodes have failed"},
		{"after too many failures, and an edit", func(c *cluster) {
			c.m.Spec.FailureLimit, c.m.Status.ObservedGeneration, c.m.Generation = 1, 1, 2
			c.m.Status.Nodes = map[string]tidekeeperv1.NodeProgress{"a": {UID: "a", Phase: tidekeeperv1.NodeFailed}}
		}, []string{"a", "b"}, tidekeeperv1.ReasonMaintaining, ""},
	} {
		c := newCluster("a", "b", "c")
		tc.change(c)
		c.settle(t)
		names, reason, message := begun(c)
		if !slices.Equal(names, tc.want) || reason != tc.reason || !strings.Contains(message, tc.message) {
			t.Errorf("%s: drains of %q begin, %s: %s", tc.name, names, reason, message)
		}
	}
}

// TestZoneLimit checks that drains in other zones begin while the limit of a zone is used up.
func TestZoneLimit(t *testing.T) {
	c := newCluster("a", "b", "c")
	for name, zone := range map[string]string{"a": "x", "b": "x", "c": "y"} {
		n := c.nodes[name]
		n.Zone = zone
		c.nodes[name] = n
	}
	c.m.Spec.MaxUnavailablePerZone, c.m.Spec.MaxUnavailable = 1, new(intstr.FromInt32(3))
	c.settle(t)
	if names, _, _ := begun(c); !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("drains of %q begin", names)
	}
}

// TestTimeouts checks that a node whose drain times out is put back into use, that the timeout does
// not advance during a Freeze, and that a node whose maintenance times out stays cordoned until its
// maintenance is complete.
func TestTimeouts(t *testing.T) {
	c := newCluster("a")
	c.settle(t)
	c.now = noon.Add(9 * time.Minute)
	c.frozen = true
	c.settle(t)
	c.now = noon.Add(5 * time.Hour)
	c.settle(t)
	if p := c.m.Status.Nodes["a"]; p.Phase != tidekeeperv1.NodeDraining || p.Reason != tidekeeperv1.ReasonFrozen {
		t.Errorf("frozen: %+v", p)
	}
	c.frozen = false
	c.settle(t)
	if p := c.m.Status.Nodes["a"]; p.Phase != tidekeeperv1.NodeDraining {
		t.Errorf("a minute is left after the Freeze: %+v", p)
	}
	c.now = c.now.Add(2 * time.Minute)
	c.settle(t)
	if p, n := c.m.Status.Nodes["a"], c.nodes["a"]; p.Phase != tidekeeperv1.NodeFailed || p.Reason != tidekeeperv1.ReasonDrainTimeout || n.Unschedulable || n.CordonedFor != "" {
		t.Errorf("not empty in time: %+v %+v", p, n)
	}

	c = newCluster("a")
	c.empty["a"] = true
	c.settle(t)
	c.now = noon.Add(2 * time.Hour)
	c.settle(t)
	if p, n := c.m.Status.Nodes["a"], c.nodes["a"]; p.Phase != tidekeeperv1.NodeFailed || p.Reason != tidekeeperv1.ReasonMaintenanceTimeout || !n.Unschedulable {
		t.Errorf("not maintained in time: %+v %+v", p, n)
	}
	n := c.nodes["a"]
	n.DrainedFor = ""
	c.nodes["a"] = n
	c.settle(t)
	if n := c.nodes["a"]; n.Unschedulable || n.CordonedFor != "" {
		t.Errorf("maintained at last: %+v", n)
	}
}

// TestReplaced checks nodes that are deleted, or replaced by a Node of the same name.
func TestReplaced(t *testing.T) {
	for _, tc := range []struct {
		name  string
		empty bool
		want  tidekeeperv1.NodePhase
	}{
		{"while it was being drained", false, tidekeeperv1.NodeReleased},
		{"after it was drained", true, tidekeeperv1.NodeDone},
	} {
		c := newCluster("a", "b")
		c.empty["a"] = tc.empty
		c.settle(t)
		n := c.nodes["a"]
		n.UID, n.CordonedFor, n.DrainedFor, n.Unschedulable = "another", "", "", false
		c.nodes["a"] = n
		c.settle(t)
		if p := c.m.Status.Nodes["a"]; p.Phase != tc.want {
			t.Errorf("%s: %+v", tc.name, p)
		}
		if c.nodes["a"].Unschedulable {
			t.Errorf("%s: the new node is cordoned in the same round", tc.name)
		}
	}
}

// TestRounds checks that a tick of the schedule begins another round once no node of the previous
// round is in maintenance.
func TestRounds(t *testing.T) {
	c := newCluster("a")
	c.m.Spec.Schedule = "0 22 * * *"
	c.settle(t)
	c.now = noon.Add(10 * time.Hour)
	c.empty["a"] = true
	c.settle(t)
	if p := c.m.Status.Nodes["a"]; p.Phase != tidekeeperv1.NodeDrained {
		t.Fatalf("in the first round: %+v", p)
	}
	c.now = noon.Add(34 * time.Hour)
	c.m.Spec.MaintenanceTimeoutSeconds = 604800
	c.settle(t)
	if at := c.m.Status.RoundTime; !at.Time.Equal(noon.Add(10 * time.Hour)) {
		t.Errorf("the second round began at %s, while a node was running", at)
	}
	n := c.nodes["a"]
	n.DrainedFor = ""
	c.nodes["a"], c.empty["a"] = n, false
	c.settle(t)
	if at, p := c.m.Status.RoundTime, c.m.Status.Nodes["a"]; !at.Time.Equal(noon.Add(34*time.Hour)) || p.Phase != tidekeeperv1.NodeDraining {
		t.Errorf("the second round: %s, %+v", at, p)
	}
}
