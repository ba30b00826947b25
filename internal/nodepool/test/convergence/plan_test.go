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

// The following tests simulate a small cluster in which users edit pools and nodes while the
// controllers reconcile in any order, with at most one write at a time. The controllers may be
// killed after any write. Since they keep no state, a crash only changes the order of the next
// writes.

// TestPlanConverges checks that the simulated cluster converges from any state that users have
// left. The final state must not depend on the order in which the controllers reconcile nodes and
// pools, or on the points at which they are killed. On the way, no key may flap and no setting of
// other clients may change; see [world.check].
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

// settingsOf returns a node's settings in a form that can be compared, without the order and
// timeAdded of taints.
func settingsOf(node *corev1.Node) map[string]string {
	settings := map[string]string{}
	for s, value := range setting.Actual(node) {
		settings[s.String()] = value
	}
	return settings
}

// TestPlanShapesMembers checks that, in the final state, every member node matches its pools. If
// several pools specify a key, the node must have the oldest pool's value.
func TestPlanShapesMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		w.settle(t, "settle")
		for name, node := range w.nodes {
			members := []*tidekeeperv1.NodePool{}
			for _, c := range w.poolsOn(t, node, permissions{true, true}) {
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
			nodePlan := plan.ForNode(node, w.poolsOn(t, node, permissions{true, true}))
			if len(nodePlan.Outdated)+len(nodePlan.EvictionPending) > 0 {
				t.Fatalf("node %s has settled, but is outdated for %v, and has evictions pending for %v", name, nodePlan.Outdated, nodePlan.EvictionPending)
			}
		}
	})
}

// TestPlanLeavesNothingBehind checks the settings of nodes after all pools have been deleted:
//   - a setting that no pool ever wrote is as users left it, including a value that the node
//     had before a pool specified the same value;
//   - a value with which a user last overwrote a pool's value is kept;
//   - every other setting that a pool wrote is removed. The value that it had before is not
//     restored.
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
					// A user wrote the pool's own value again. Whether the pool still owns the
					// value depends on whether a plan was made while the node lacked it.
					continue
				}
				if value(is, s) != want {
					t.Fatalf("%s of node %s is %s; want %s; last by a pool: %+v, by hand: %+v", s, name, value(is, s), want, pool, hand)
				}
			}
		}
	})
}
