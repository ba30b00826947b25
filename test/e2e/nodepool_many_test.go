// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestNodePool_ManyNodes edits a pool with more nodes than the manager plans at once.
// Its status manages a new key before all nodes are planned. The manager is killed at its first write,
// at its first write of a node, and in the midst. Each node is written to once, and has the label when
// the pool's status says that it is healthy.
func TestNodePool_ManyNodes(t *testing.T) {
	const nodes = 150
	c := framework.Start(t, "--audit", fmt.Sprintf("--nodes=%d", nodes))
	proxy := c.StartProxy(t, "")
	start := func() *framework.Manager { return c.StartManager(t, "--kubeconfig", proxy.Kubeconfig) }
	manager := start()
	p := framework.Pool("many")
	p.Spec = tidekeeperv1.NodePoolSpec{
		Selector: &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{corev1.LabelOSStable: "linux"}},
		Labels:   map[string]tidekeeperv1.LabelValue{"example.com/first": "1"},
	}
	c.Apply(t, p)
	lacking := func(key, value string) (count int) {
		list := &corev1.NodeList{}
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].Labels[key] != value {
				count++
			}
		}
		return count
	}
	settled := func(key, value string) {
		t.Helper()
		framework.Eventually(t, "the pool is healthy", func() error {
			c.Refresh(t, p)
			return framework.ReadyIs(p.Status.Conditions, p.Generation, "Healthy")
		})
		if count := lacking(key, value); count > 0 || p.Status.NodeCount != nodes {
			t.Errorf("%d nodes lack %s=%s, and the pool is healthy with %d nodes", count, key, value, p.Status.NodeCount)
		}
	}
	settled("example.com/first", "1")

	for i, tc := range []struct {
		name, key, rule string
	}{
		{name: "no kill", key: "example.com/second"},
		{name: "killed before the key is managed", key: "example.com/third", rule: "match: {verbs: [patch], resources: [nodepools/status]}"},
		{name: "killed at the first node", key: "example.com/fourth", rule: "match: {verbs: [patch], resources: [nodes]}"},
		{name: "killed in the midst", key: "example.com/fifth", rule: "match: {verbs: [patch], resources: [nodes]}, count: {from: 90}"},
		{name: "another value", key: "example.com/first"},
		{name: "another value, killed", key: "example.com/first", rule: "match: {verbs: [patch], resources: [nodes]}, count: {from: 70}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			value := fmt.Sprint(i + 2)
			if tc.rule != "" {
				proxy.Add(t, "rules: [{name: stop, "+tc.rule+", fault: {kind: Hang}}]")
			}
			manager.AssertIdle(t)
			audit := c.Audit(t, "tidekeeper/")
			c.Change(t, p, func() { p.Spec.Labels[tc.key] = tidekeeperv1.LabelValue(value) })
			if tc.rule != "" {
				proxy.AwaitFired(t, "stop", 1)
				manager.Kill(t)
				proxy.Clear(t)
				manager = start()
			}
			settled(tc.key, value)
			written, statuses := map[string]int{}, 0
			for _, r := range audit.Requests(t) {
				switch {
				case r.Resource == "nodes" && r.Writes() && r.Code < 300:
					if written[r.Name]++; statuses == 0 && tc.key != "example.com/first" {
						t.Errorf("%s was written to before the pool's status", r.Name)
					}
				case r.Resource == "nodepools" && r.Subresource == "status" && r.Code < 300:
					statuses++
				}
			}
			for node, times := range written {
				if times != 1 {
					t.Errorf("%s was written to %d times, want once", node, times)
				}
			}
			// The answer to a write of a manager that is killed meanwhile may have any code.
			if tc.rule == "" && len(written) != nodes {
				t.Errorf("%d nodes were written to, want %d", len(written), nodes)
			}
		})
	}
	c.Delete(t, p)
	framework.Eventually(t, "the labels are gone", func() error {
		if kept := nodes - lacking("example.com/first", "7"); kept > 0 {
			return fmt.Errorf("%d nodes still have one", kept)
		}
		return nil
	})
	manager.AssertSound(t)
}
