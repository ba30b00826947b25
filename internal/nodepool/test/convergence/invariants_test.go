// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// check is what holds at every moment.
func (w *world) check(t *rapid.T) {
	for name, node := range w.nodes {
		holders := map[setting.Key]string{}
		for pool, holding := range w.record(t, node) {
			p, ok := w.pools[pool]
			if !ok {
				t.Fatalf("node %s carries something of pool %s, which is gone", name, pool)
			}
			for s := range holding {
				if !setting.Manages(p, s) {
					t.Fatalf("node %s carries %s of pool %s, which does not vouch for it: it will stay for good", name, s, pool)
				}
				if other, taken := holders[s]; taken {
					t.Fatalf("node %s has %s of both %s and %s on record", name, s, pool, other)
				}
				holders[s] = pool
			}
		}

		is, byHand := setting.Actual(node), setting.Actual(w.twins[name])
		for _, s := range slices.Concat(contestedSlots, foreignSlots) {
			if _, touched := w.byPool[place{name, s}]; touched {
				continue
			}
			if value(is, s) != value(byHand, s) {
				t.Fatalf("no pool ever wrote %s of node %s, which is %s and should be %s", s, name, value(is, s), value(byHand, s))
			}
		}
		if diff := cmp.Diff(foreignTaints(w.twins[name]), foreignTaints(node), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("taints of others on node %s (-want +got):\n%s", name, diff)
		}
		for _, s := range foreignSlots {
			if _, touched := w.byPool[place{name, s}]; touched {
				t.Fatalf("%s of node %s was written, which no pool asks for", s, name)
			}
		}
	}
	w.checkNoFlapping(t)
}

// checkNoFlapping: as long as people keep their hands off, a key only ever
// passes to an older pool, and nobody writes it twice.
func (w *world) checkNoFlapping(t *rapid.T) {
	for at, owners := range w.owners {
		for before, after := range pairs(owners) {
			if plan.ByPrecedence(before, after) <= 0 {
				t.Fatalf("%s of node %s was written for pool %s, then for pool %s", at.slot, at.node, before.Name, after.Name)
			}
		}
	}
}

func pairs[T any](list []T) func(func(T, T) bool) {
	return func(yield func(T, T) bool) {
		for i := 1; i < len(list); i++ {
			if !yield(list[i-1], list[i]) {
				return
			}
		}
	}
}

func value(slots map[setting.Key]string, s setting.Key) string {
	if v, ok := slots[s]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "absent"
}

func foreignTaints(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return !slices.Contains(foreignSlots, setting.TaintKey(t.Key, t.Effect))
	})
}
