// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// withNode decides once with another version of a node than the stored one, as a cache that lags shows.
func (c *cluster) withStale(name string, stale Node) {
	real := c.nodes[name]
	c.nodes[name] = stale
	out := c.decide()
	c.m.Status = out.Status // the status is written; the patch of the node fails on its resourceVersion
	c.nodes[name] = real
}

// 1. A new leader whose cache of nodes lags behind its cache of NodeMaintenances.
func TestReview_StaleNodeIsForgottenInCordon(t *testing.T) {
	c := newCluster("a")
	before := c.nodes["a"]
	c.settle(t)
	if !c.nodes["a"].Unschedulable || !c.m.Status.Nodes["a"].Cordoned {
		t.Fatal("set-up")
	}
	c.withStale("a", before)
	c.settle(t)
	n := c.nodes["a"]
	if n.Unschedulable && n.CordonedFor == "" {
		t.Errorf("the node is cordoned, without a mark, and %s: nobody will uncordon it", c.m.Status.Nodes["a"].Phase)
	}
}

// 2. The same lag while the node is being maintained.
func TestReview_StaleMarkEndsTheMaintenance(t *testing.T) {
	c := newCluster("a")
	c.settle(t)
	cordoned := c.nodes["a"]
	c.empty["a"] = true
	c.settle(t)
	if p := c.m.Status.Nodes["a"]; p.Phase != tidekeeperv1.NodeDrained || !p.Marked {
		t.Fatal("set-up", p)
	}
	c.withStale("a", cordoned)
	c.settle(t)
	if n := c.nodes["a"]; !n.Unschedulable {
		t.Errorf("the node is in use again (%s), and nobody removed the annotation", c.m.Status.Nodes["a"].Phase)
	}
}

// 3. The maintenance is done before the manager writes that the node was marked.
func TestReview_QuickMaintainer(t *testing.T) {
	c := newCluster("a")
	c.settle(t)
	c.empty["a"] = true
	c.reconcile(-1) // Drained, and the annotation is written.
	n := c.nodes["a"]
	if n.DrainedFor != "m" {
		t.Fatal("set-up")
	}
	n.DrainedFor = "" // Whoever maintains it is done at once.
	c.nodes["a"] = n
	c.settle(t)
	if p := c.m.Status.Nodes["a"]; p.Phase == tidekeeperv1.NodeDrained {
		t.Errorf("the node waits for its annotation to be removed a second time: %s %q", p.Phase, c.nodes["a"].DrainedFor)
	}
}

// 4. A round that does not fit into its window: a node takes 40 minutes, and the window is open for 60.
func TestReview_LastNodesAreNeverMaintained(t *testing.T) {
	c := newCluster("a", "b", "c")
	c.m.Spec.Until, c.m.Spec.DrainTimeoutSeconds = tidekeeperv1.UntilDrained, 3600
	c.m.Spec.Schedule = "0 22 * * *"
	c.m.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "0 22 * * *", DurationSeconds: 3600}}
	for day := range 5 {
		c.now = noon.Add(10*time.Hour + time.Duration(day)*24*time.Hour) // 22:00
		c.settle(t)
		for range 2 {
			c.now = c.now.Add(40 * time.Minute)
			for name, p := range c.m.Status.Nodes {
				c.empty[name] = p.Phase == tidekeeperv1.NodeDraining
			}
			for c.reconcile(-1) {
				for name := range c.empty {
					c.empty[name] = c.empty[name] && c.m.Status.Nodes[name].Phase != tidekeeperv1.NodeDone
				}
			}
		}
	}
	if c.starts["c"] == 0 {
		t.Errorf("after five rounds: drains %v", c.starts)
	}
}

// 5. failureLimit: "no further drain begins until the spec is edited".
func TestReview_FailureLimitEndsWithTheNextTick(t *testing.T) {
	c := newCluster("a", "b", "c")
	c.m.Spec.FailureLimit, c.m.Spec.Schedule = 1, "0 22 * * *"
	c.now = noon.Add(10 * time.Hour)
	c.settle(t)
	c.now = c.now.Add(11 * time.Minute) // DrainTimeoutSeconds is 600.
	c.settle(t)
	if _, reason, _ := begun(c); reason != tidekeeperv1.ReasonFailureLimit {
		t.Fatal("set-up", reason)
	}
	before := c.starts["a"]
	c.now = c.now.Add(24 * time.Hour)
	c.settle(t)
	if names, reason, message := begun(c); c.starts["a"] > before || reason != tidekeeperv1.ReasonFailureLimit {
		t.Errorf("without an edit: %v, %s: %s", names, reason, message)
	}
}

// 6. Each of two nodes has a place for its pods, but not both.
func TestReview_TwoNodesShareOnePlace(t *testing.T) {
	c := newCluster("a", "b", "c")
	c.m.Spec.MaxUnavailable = new(intstr.FromInt32(2))
	var asked []string
	in := Input{Maintenance: c.m.DeepCopy(), Now: c.now, Nodes: c.nodes, Selected: []string{"a", "b", "c"}, Drains: map[string]Drain{}}
	in.HasPlace = func(node string) bool { asked = append(asked, node); return true } // The question names one node, whatever else is claimed.
	out := Decide(in)
	if len(out.Status.Nodes) == 2 && slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("two drains begin by one look at the cluster, and the question about b does not say that a is drained")
	}
}
