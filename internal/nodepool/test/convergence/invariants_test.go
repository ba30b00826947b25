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

// check verifies the invariants that must hold after every step of the simulation.
func (w *world) check(t *rapid.T) {
	for name, node := range w.nodes {
		holders := map[setting.Key]string{}
		for pool, settings := range w.record(t, node) {
			p, ok := w.pools[pool]
			if !ok {
				t.Fatalf("node %s has settings of pool %s, which no longer exists", name, pool)
			}
			for s := range settings {
				if !setting.Manages(p, s) {
					t.Fatalf("node %s has %s of pool %s, which does not manage it: it will stay forever", name, s, pool)
				}
				if other, taken := holders[s]; taken {
					t.Fatalf("on node %s, %s is recorded for both %s and %s", name, s, pool, other)
				}
				holders[s] = pool
			}
		}

		is, byHand := setting.Actual(node), setting.Actual(w.twins[name])
		for _, s := range slices.Concat(contestedKeys, externalKeys) {
			if _, touched := w.byPool[place{name, s}]; touched {
				continue
			}
			if value(is, s) != value(byHand, s) {
				t.Fatalf("no pool ever wrote %s of node %s, which is %s; want %s", s, name, value(is, s), value(byHand, s))
			}
		}
		if diff := cmp.Diff(externalTaints(w.twins[name]), externalTaints(node), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("taints of other clients on node %s (-want +got):\n%s", name, diff)
		}
		for _, s := range externalKeys {
			if _, touched := w.byPool[place{name, s}]; touched {
				t.Fatalf("%s of node %s was written, which no pool asks for", s, name)
			}
		}
	}
	w.checkNoFlapping(t)
}

// checkNoFlapping checks that, between two manual edits, the ownership of a key passes only from
// younger to older pools, and that no pool writes the key twice.
func (w *world) checkNoFlapping(t *rapid.T) {
	for at, owners := range w.owners {
		for before, after := range pairs(owners) {
			if plan.ByPrecedence(before, after) <= 0 {
				t.Fatalf("%s of node %s was written for pool %s, then for pool %s", at.key, at.node, before.Name, after.Name)
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

func value(settings map[setting.Key]string, key setting.Key) string {
	if v, ok := settings[key]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "absent"
}

func externalTaints(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return !slices.Contains(externalKeys, setting.TaintKey(t.Key, t.Effect))
	})
}
