// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestLosingOneAfterTheOther checks that pods which found a place after a loss need another one if that
// node is lost, too, and that nodes of earlier losses take no pods.
func TestLosingOneAfterTheOther(t *testing.T) {
	nodes := []corev1.Node{aNode("a", "cpu", "2", "pods", "10"), aNode("b", "cpu", "2", "pods", "10"), aNode("c", "cpu", "2", "pods", "10")}
	pods := []corev1.Pod{
		aPod("web-1", "ReplicaSet", "web", "a", "cpu", "1"), aPod("web-2", "ReplicaSet", "web", "a", "cpu", "1"),
		aPod("db-1", "StatefulSet", "db", "b", "cpu", "1"), aPod("log", "DaemonSet", "log", "b", "cpu", "0"),
	}
	c := newCluster(nodes, pods)
	first, after := c.Losing([]string{"a"})
	equal(t, "pods and pods without place after the loss of a", []int{2, 0}, []int{first.Pods, first.Homeless()})
	// One of web's pods is on b now, as first-fit uses the nodes in the order of their names.
	second, after := after.Losing([]string{"b"})
	equal(t, "after that of b", []int{2, 1}, []int{second.Pods, second.Homeless()})
	third, after := after.Losing([]string{"c"})
	equal(t, "after that of c", []int{2, 2}, []int{third.Pods, third.Homeless()})
	equal(t, "nodes and pending pods at the end", []int{0, 3}, []int{len(after.nodes), len(after.pending)})
	equal(t, "the loss of a, asked again", first, c.Lose([]string{"a"}, nil))
}

// TestPlacing checks that added pods take room, and are reported if there is none.
func TestPlacing(t *testing.T) {
	c := newCluster([]corev1.Node{aNode("a", "cpu", "2", "pods", "10"), aNode("b", "cpu", "2", "pods", "10")}, []corev1.Pod{aPod("web-1", "ReplicaSet", "web", "a", "cpu", "1")})
	var added []*corev1.Pod
	for _, name := range []string{"new-1", "new-2"} {
		pod := aPod(name, "ReplicaSet", "web", "", "cpu", "1")
		added = append(added, &pod)
	}
	placed, after := c.Placing(added)
	equal(t, "pods that were added, and fit on no node", []int{2, 0}, []int{placed.Pods, placed.Homeless()})
	loss := after.Lose([]string{"a"}, nil)
	equal(t, "pods of a, and pods without place", []int{2, 1}, []int{loss.Pods, loss.Homeless()})
	big := aPod("big", "ReplicaSet", "web", "", "cpu", "2")
	placed, _ = after.Placing([]*corev1.Pod{&big})
	equal(t, "a pod that fits on no node", []WithoutPlace{{Namespace: "shop", Workload: "ReplicaSet/web", Pods: 1}}, placed.WithoutPlace)
	equal(t, "the name of its node", "", big.Spec.NodeName)
}

// TestLosingAgreesWithLose checks in random clusters that Losing reports what Lose reports, that no pod
// appears or vanishes but those that end with their node, and that the rest of the cluster is the same.
func TestLosingAgreesWithLose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := world(t)
		lost := rapid.SliceOfDistinct(rapid.SampledFrom(nodes), func(n corev1.Node) string { return n.Name }).Draw(t, "lost")
		var names []string
		for _, n := range lost {
			names = append(names, n.Name)
		}
		c := newCluster(nodes, pods)
		loss, after := c.Losing(names)
		if diff := cmp.Diff(c.Lose(names, nil), loss, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the losses differ (-Lose +Losing):\n%s", diff)
		}
		ends, stay := 0, map[string]string{}
		total := len(c.pending)
		for _, n := range c.nodes {
			total += len(n.pods)
			for _, p := range n.pods {
				switch {
				case after.byName[n.object.Name] != nil:
					stay[p.object.Namespace+"/"+p.object.Name] = n.object.Name
				case p.onLoss != needsNode:
					ends++
				}
			}
		}
		got := len(after.pending)
		for _, n := range after.nodes {
			got += len(n.pods)
			for _, p := range n.pods {
				if on := stay[p.object.Namespace+"/"+p.object.Name]; on != "" && on != n.object.Name {
					t.Errorf("pod %s has moved from %s to %s", p.object.Name, on, n.object.Name)
				}
			}
		}
		if len(after.pending) != len(c.pending)+loss.Homeless() || got != total-ends {
			t.Errorf("%d pods of %d, %d of which end; pending %d, %d of which have lost their place", got, total, ends, len(after.pending), loss.Homeless())
		}
	})
}
