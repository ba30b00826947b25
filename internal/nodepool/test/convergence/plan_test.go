// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// The properties below are about a small world in which people edit pools and
// nodes while the controllers do one write at a time, in any order, and may be
// killed after any of them. The controllers remember nothing, so a crash is
// nothing but the write that comes next not being the one that was due.

// From wherever people leave it, the world comes to the same end, in whatever
// order the controllers look at nodes and pools and however often they are
// killed on the way. On the way there no key flaps and nothing foreign is
// touched; see check.
func TestPlanConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := history(t)
		other := one.clone()
		one.rest(t, "one way")
		other.rest(t, "other way")
		for name := range one.nodes {
			if diff := cmp.Diff(shapeOf(one.nodes[name]), shapeOf(other.nodes[name])); diff != "" {
				t.Fatalf("node %s at the end of two ways (-one +other):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(one.pools, other.pools); diff != "" {
			t.Fatalf("pools at the end of two ways (-one +other):\n%s", diff)
		}
	})
}

// shapeOf is what matters of a node: the order of taints does not, nor when
// they were added.
func shapeOf(node *corev1.Node) map[string]string {
	shape := map[string]string{}
	for s, value := range setting.Actual(node) {
		shape[s.String()] = value
	}
	return shape
}

// When everything has come to rest, every member looks like its pools: each
// key has the value that the oldest pool asks for.
func TestPlanShapesMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		w.rest(t, "rest")
		for name, node := range w.nodes {
			members := []*tidekeeperv1.NodePool{}
			for _, c := range w.claims(t, node, true) {
				if c.Member {
					members = append(members, c.Pool)
				}
			}
			slices.SortFunc(members, plan.ByPrecedence)
			is := setting.Actual(node)
			settled := map[setting.Key]bool{}
			for _, pool := range members {
				for s, want := range setting.Desired(pool) {
					if !settled[s] && value(is, s) != fmt.Sprintf("%q", want) {
						t.Fatalf("%s of node %s is %s; pool %s, the oldest, asks for %q", s, name, value(is, s), pool.Name, want)
					}
					settled[s] = true
				}
			}
			nodePlan := plan.ForNode(node, w.claims(t, node, true))
			if len(nodePlan.Outdated)+len(nodePlan.EvictionPending) > 0 {
				t.Fatalf("node %s is at rest, but not said to look like %v, and held back for %v", name, nodePlan.Outdated, nodePlan.EvictionPending)
			}
		}
	})
}

// When all pools are deleted, nothing of them is left on any node:
//   - what no pool ever wrote is just what people made of it; a value that was
//     there before and was what a pool asks for is such a one;
//   - what a person wrote over a pool's value last stays;
//   - every other place that a pool wrote to is empty. What was there before
//     the pool does not come back.
func TestPlanLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		for name := range w.pools {
			w.delete(name)
		}
		w.rest(t, "clean-up")
		if len(w.pools) > 0 {
			t.Fatalf("pools that never end: %v", slices.Collect(maps.Keys(w.pools)))
		}
		for name, node := range w.nodes {
			if text, ok := node.Annotations[tidekeeperv1.OwnershipAnnotation]; ok {
				t.Fatalf("node %s still has the record %q", name, text)
			}
			is, byHand := setting.Actual(node), setting.Actual(w.twins[name])
			for _, s := range contestedSlots {
				at := place{name, s}
				pool, touched := w.byPool[at]
				hand := w.byHand[at]
				want := "absent"
				switch {
				case !touched, hand.tick > pool.tick && hand.value != pool.value:
					want = value(byHand, s)
				case hand.tick > pool.tick && value(is, s) == value(byHand, s):
					// A person wrote once more what the pool had put there.
					// Whether a plan saw the place without it in between
					// decides whose it is.
					continue
				}
				if value(is, s) != want {
					t.Fatalf("%s of node %s is %s and should be %s; last by a pool: %+v, by hand: %+v", s, name, value(is, s), want, pool, hand)
				}
			}
		}
	})
}
