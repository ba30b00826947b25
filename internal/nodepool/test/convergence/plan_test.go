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

// The properties below are about a small world in which users edit pools and nodes while the
// controllers do one write at a time, in any order, and may be killed after any of them. The
// controllers remember nothing, so a crash only means that the next write is another one.

// From any state that users leave, the world settles in the same state, in whatever order
// the controllers reconcile nodes and pools and however often they are killed. Meanwhile no
// key flaps, and no setting of other clients changes; see check.
func TestPlanConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := history(t)
		other := one.clone()
		one.settle(t, "one way")
		other.settle(t, "other way")
		for name := range one.nodes {
			if diff := cmp.Diff(settingsOf(one.nodes[name]), settingsOf(other.nodes[name])); diff != "" {
				t.Fatalf("node %s in the two settled states (-one +other):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(one.pools, other.pools); diff != "" {
			t.Fatalf("pools in the two settled states (-one +other):\n%s", diff)
		}
	})
}

// settingsOf returns what matters of a node, which is neither the order of taints nor the
// time at which they were added.
func settingsOf(node *corev1.Node) map[string]string {
	settings := map[string]string{}
	for s, value := range setting.Actual(node) {
		settings[s.String()] = value
	}
	return settings
}

// When everything has settled, every member matches its pools: each key has the value that
// the oldest pool asks for.
func TestPlanShapesMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		w.settle(t, "settle")
		for name, node := range w.nodes {
			members := []*tidekeeperv1.NodePool{}
			for _, c := range w.poolsOn(t, node, true) {
				if c.Member {
					members = append(members, c.Pool)
				}
			}
			slices.SortFunc(members, plan.ByPrecedence)
			is := setting.Actual(node)
			checked := map[setting.Key]bool{}
			for _, pool := range members {
				for s, want := range setting.Desired(pool) {
					if !checked[s] && value(is, s) != fmt.Sprintf("%q", want) {
						t.Fatalf("%s of node %s is %s; pool %s, the oldest, asks for %q", s, name, value(is, s), pool.Name, want)
					}
					checked[s] = true
				}
			}
			nodePlan := plan.ForNode(node, w.poolsOn(t, node, true))
			if len(nodePlan.Outdated)+len(nodePlan.EvictionPending) > 0 {
				t.Fatalf("node %s has settled, but is outdated for %v, and has evictions pending for %v", name, nodePlan.Outdated, nodePlan.EvictionPending)
			}
		}
	})
}

// When all pools are deleted, nothing of them is left on any node:
//   - a setting that no pool ever wrote is as users left it, including a value that was
//     there before a pool asked for the same value;
//   - a value that a user wrote over a pool's value last stays;
//   - every other setting that a pool wrote is removed. The value from before the pool is
//     not restored.
func TestPlanLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		for name := range w.pools {
			w.delete(name)
		}
		w.settle(t, "clean-up")
		if len(w.pools) > 0 {
			t.Fatalf("pools that are not deleted: %v", slices.Collect(maps.Keys(w.pools)))
		}
		for name, node := range w.nodes {
			if text, ok := node.Annotations[tidekeeperv1.OwnershipAnnotation]; ok {
				t.Fatalf("node %s still has the record %q", name, text)
			}
			is, byHand := setting.Actual(node), setting.Actual(w.twins[name])
			for _, s := range contestedKeys {
				at := place{name, s}
				pool, touched := w.byPool[at]
				hand := w.byHand[at]
				want := "absent"
				switch {
				case !touched, hand.tick > pool.tick && hand.value != pool.value:
					want = value(byHand, s)
				case hand.tick > pool.tick && value(is, s) == value(byHand, s):
					// A user wrote the pool's own value again. Whether it is still
					// the pool's depends on whether a plan saw the node without it
					// in between.
					continue
				}
				if value(is, s) != want {
					t.Fatalf("%s of node %s is %s; want %s; last by a pool: %+v, by hand: %+v", s, name, value(is, s), want, pool, hand)
				}
			}
		}
	})
}
