// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestKillAtAnyTime kills the manager again and again while pools are created, edited and deleted,
// and while users move and edit nodes. The final state must be the same as without the kills.
func TestKillAtAnyTime(t *testing.T) {
	const nodes = 6
	cluster.AddNodes(t, "kill", nodes, "--labels", role("kill-a")+"=", "--taints", "example.com/theirs=:PreferNoSchedule")
	name := func(i int) string { return fmt.Sprintf("kill-%d", i) }

	// crashing runs a manager that is killed shortly after each of its starts, ready or
	// not, until stop is called.
	crashing := func() (stop func()) {
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				manager := cluster.LaunchManager(t)
				select {
				case <-time.After(time.Duration(rand.IntN(1500)) * time.Millisecond):
					manager.Kill(t)
				case <-done:
					manager.Kill(t)
					return
				}
			}
		}()
		return func() { close(done); <-stopped }
	}

	a, b, c := pool("kill-a"), pool("kill-b"), pool("kill-c")
	a.Spec.Handler = "runc"
	// The third pool conflicts with the first pool, and gets the shared key later.
	c.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"kubernetes.io/os": "linux"},
		MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: "In", Values: []tidekeeperv1.LabelValue{"kill-1", "kill-2"}}}}
	c.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/kill-a": "contested"}
	c.Spec.Taints = nil

	stop := crashing()
	cluster.Apply(t, a)
	cluster.Apply(t, b)
	pause := func() { time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond) } // sleep: the manager is killed at random times during its work
	pause()
	cluster.Apply(t, c)
	for i := 1; i <= nodes; i++ {
		if i%2 == 0 {
			relabel(t, name(i), map[string]string{role("kill-a"): "-", role("kill-b"): ""})
		}
		pause()
	}
	relabel(t, name(1), map[string]string{"example.com/kill-a": "by-hand"})
	cluster.Change(t, b, func() {
		b.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/new": "1"}
		b.Spec.Taints[0].Value = "no"
	})
	pause()
	cluster.Delete(t, a)
	pause()
	relabel(t, name(3), map[string]string{role("kill-a"): "-"})
	pause()
	stop()

	cluster.StartManager(t)
	eventuallyGone(t, a)
	theirs := "example.com/theirs=:PreferNoSchedule"
	for i := 1; i <= nodes; i++ {
		want := shape{Labels: map[string]string{}, Taints: []string{theirs}}
		if i%2 == 0 {
			want.Labels["example.com/new"] = "1"
			want.Taints = append(want.Taints, "example.com/kill-b=no:NoSchedule")
			want.Recorded = append(want.Recorded, "kill-b")
		}
		if i <= 2 {
			want.Labels["example.com/kill-a"] = "contested"
			want.Recorded = append(want.Recorded, "kill-c")
		}
		eventuallyShape(t, name(i), want)
	}
	healthyWith(t, "kill-b", 3)
	healthyWith(t, "kill-c", 2)
	framework.Eventually(t, "the status has only the managed keys of the spec", func() error {
		cluster.Refresh(t, b)
		return diff(tidekeeperv1.ManagedKeys{Labels: []string{"example.com/new"}, Taints: []string{"example.com/kill-b:NoSchedule"}}, b.Status.Managed)
	})
}

// TestAtRest checks that a manager without work reads nothing and writes nothing while the kubelets
// of a thousand nodes report their status.
func TestAtRest(t *testing.T) {
	const nodes = 1000
	quiet := framework.Start(t, "--nodes=0", "--audit")
	quiet.Sandbox(t, "nodes", "add", "--pool=rest", "--name-prefix=rest", fmt.Sprint("--count=", nodes))
	audit := quiet.Audit(t, "tidekeeper/")
	p := pool("rest")
	if err := quiet.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	quiet.StartManager(t)
	framework.EventuallyWithin(t, 4*framework.Patience, "the pool is healthy with all nodes", func() error {
		quiet.Refresh(t, p)
		return errors.Join(is(p, "Healthy"), diff(int32(nodes), p.Status.NodeCount))
	})
	perNode, statuses := map[string]int{}, 0
	for _, r := range audit.Requests(t) {
		switch {
		case r.Resource == "nodes" && r.Writes() && r.Code < 300: // Others are conflicts with the controller manager.
			perNode[r.Name]++
		case r.Resource == "nodepools" && r.Subresource == "status":
			statuses++
		}
	}
	for name, writes := range perNode {
		if writes != 1 {
			t.Errorf("node %s was written %d times, want once", name, writes)
		}
	}
	if len(perNode) != nodes {
		t.Errorf("%d nodes were written, want %d", len(perNode), nodes)
	}
	t.Logf("%d nodes shaped with one write each and %d status writes", nodes, statuses)

	// The manager's last status write and events may still be in flight.
	framework.Eventually(t, "the last events are recorded", func() error {
		list := &corev1.EventList{}
		if err := quiet.List(t.Context(), list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "SettingsApplied" }) {
			return errors.New("not yet")
		}
		return nil
	})
	quiet.Refresh(t, p)
	marker := quiet.Audit(t, "tidekeeper/")

	// Every kubelet reports once; each report is a watch event for the manager.
	list := &corev1.NodeList{}
	if err := quiet.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		heartbeat(t, quiet, &list.Items[i])
	}
	// The manager receives this change after all reports, so it has seen all reports once it has
	// reacted to the change.
	last := &list.Items[0]
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/rest":"by-hand"}}}`))
	if err := quiet.Patch(t.Context(), last, patch); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the manager reacts", func() error {
		quiet.Refresh(t, last)
		return diff("10", last.Labels["example.com/rest"])
	})
	for _, r := range marker.Requests(t) {
		ours := r.Resource == "nodes" && r.Name == last.Name || r.Resource == "nodepools" && r.Subresource == "status" || r.Resource == "events"
		if !ours || strings.HasPrefix(r.Verb, "list") {
			t.Errorf("request of an idle manager: %s", r)
		}
	}
}

// heartbeat writes a node's status once, like the node's kubelet.
func heartbeat(t *testing.T, c *framework.Cluster, node *corev1.Node) {
	t.Helper()
	before := node.DeepCopy()
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime.Time = time.Now()
	}
	if err := c.Status().Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
