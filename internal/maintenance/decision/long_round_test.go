// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestQuickMaintainer checks a maintenance that is complete before the manager records that it has
// marked the node as drained.
func TestQuickMaintainer(t *testing.T) {
	c := newCluster("a")
	c.settle(t)
	c.empty["a"] = true
	c.reconcile(-1) // Drained, and the annotation is written.
	n := c.nodes["a"]
	if n.DrainedFor != "m" {
		t.Fatal("set-up")
	}
	n.DrainedFor = "" // The maintenance takes no time.
	c.nodes["a"] = n
	c.settle(t)
	if p := c.m.Status.Nodes["a"]; p.Phase == tidekeeperv1.NodeDrained {
		t.Errorf("the node waits for its annotation to be removed a second time: %s %q", p.Phase, c.nodes["a"].DrainedFor)
	}
}

// TestLongRound checks a round that takes longer than its window: a node takes 40 minutes, and the
// window is open for 60 minutes. The next tick must not begin again with the first node.
func TestLongRound(t *testing.T) {
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

// TestFailureLimitOutlastsTicks checks that a round that reached the failure limit does not
// continue at the next tick.
func TestFailureLimitOutlastsTicks(t *testing.T) {
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

// TestPlaceApartFromDrains checks that nodes that are being drained are excluded when a place for
// pods is searched.
func TestPlaceApartFromDrains(t *testing.T) {
	c := newCluster("a", "b", "c")
	c.m.Spec.MaxUnavailable = new(intstr.FromInt32(2))
	var asked []string
	in := Input{Maintenance: c.m.DeepCopy(), Now: c.now, Nodes: c.nodes, Selected: []string{"a", "b", "c"}, Drains: map[string]Drain{}}
	in.HasPlace = func(node string, drained []string) bool {
		asked = append(asked, node+" apart from "+strings.Join(drained, ","))
		return true
	}
	Decide(in)
	if want := []string{"a apart from ", "b apart from a"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
