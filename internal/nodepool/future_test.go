// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// What is foretold is what the controllers do: from wherever people leave the
// world, each node comes to the end that was foretold, record and all.
func TestFutureIsWhatComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		f := futureOf(slices.Collect(maps.Values(w.pools)))
		foretold := map[string]rest{}
		for name, node := range w.nodes {
			before := node.DeepCopy()
			foretold[name] = f.of(node)
			if diff := cmp.Diff(before, node); diff != "" {
				t.Fatalf("foretelling changed node %s (-before +after):\n%s", name, diff)
			}
		}
		w.rest(t, "rest")
		for name, node := range w.nodes {
			if diff := cmp.Diff(shapeOf(foretold[name].node), shapeOf(node)); diff != "" {
				t.Fatalf("node %s (-foretold +came):\n%s", name, diff)
			}
		}
	})
}

// Two pools that move a node in and out of each other come to no end, and the
// foretelling does.
func TestFutureOfRestlessPools(t *testing.T) {
	in := MakePool("in").MatchExpression("example.com/out", "DoesNotExist").Labels("example.com/out", "1").Obj()
	end := futureOf([]*tidekeeperv1.NodePool{in}).of(MakeNode("n").Obj())
	if !end.restless {
		t.Errorf("the node comes to rest as %s", shapeOf(end.node))
	}
	still := MakePool("still").MatchLabels("a", "b").Labels("c", "d").Obj()
	if end := futureOf([]*tidekeeperv1.NodePool{still}).of(MakeNode("n").Label("a", "b").Obj()); end.restless || end.node.Labels["c"] != "d" {
		t.Errorf("a node with one pool: %+v", end)
	}
}

// What a pool puts on a node may make it a member of another.
func TestFutureFollowsMembership(t *testing.T) {
	pools := []*tidekeeperv1.NodePool{
		MakePool("one").MatchLabels("a", "1").Labels("b", "2").Obj(),
		MakePool("two").MatchLabels("b", "2").Taint("c", "3", corev1.TaintEffectNoExecute).Obj(),
	}
	end := futureOf(pools).of(MakeNode("n").Label("a", "1").Obj())
	if diff := cmp.Diff([]string{"one", "two"}, end.pools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if len(end.node.Spec.Taints) != 1 {
		t.Errorf("taints %v, want that of the second pool", end.node.Spec.Taints)
	}
}
