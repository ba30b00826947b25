// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// edit simulates a user's manual edit of a setting. It writes the value if `is` is true, and
// removes the setting if it is false.
func (w *world) edit(node string, s setting.Key, value string, is bool) {
	w.tick++
	w.byHand[place{node, s}] = written{w.tick, value}
	clear(w.owners)
	for _, n := range []*corev1.Node{w.nodes[node], w.twins[node]} {
		switch {
		case s.Kind == setting.Label && is:
			n.Labels = objects.With(n.Labels, s.Name, value)
		case s.Kind == setting.Label:
			delete(n.Labels, s.Name)
		case s.Kind == setting.Annotation && is:
			n.Annotations = objects.With(n.Annotations, s.Name, value)
		case s.Kind == setting.Annotation:
			delete(n.Annotations, s.Name)
		default:
			key, effect, _ := strings.Cut(s.Name, ":")
			other := func(t corev1.Taint) bool { return setting.TaintKey(t.Key, t.Effect) == s }
			i := slices.IndexFunc(n.Spec.Taints, other)
			switch {
			case is && i >= 0:
				n.Spec.Taints[i].Value = value
			case is:
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
			default:
				n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, other)
			}
		}
		n.ResourceVersion += "h"
	}
}

func drawSpec(t *rapid.T) tidekeeperv1.NodePoolSpec {
	m := objects.Pool("")
	for _, s := range contestedKeys {
		if !rapid.Bool().Draw(t, "asks for "+s.String()) {
			continue
		}
		value := rapid.SampledFrom(worldValues).Draw(t, "value")
		switch s.Kind {
		case setting.Label:
			m.Labels(s.Name, value)
		case setting.Annotation:
			m.Annotations(s.Name, value)
		default:
			key, effect, _ := strings.Cut(s.Name, ":")
			if s.IsNoExecute() && rapid.Bool().Draw(t, "within budgets") {
				m.TaintWithinBudgets(key, value)
			} else {
				m.Taint(key, value, corev1.TaintEffect(effect))
			}
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "selector") {
	case 0:
		m.MatchLabels("f0", "1")
	case 1:
		m.MatchExpression("f0", metav1.LabelSelectorOpNotIn, "1")
	}
	return m.Obj().Spec
}

// userActions returns the possible random actions of users, keyed by description.
func (w *world) userActions() map[string]func(*rapid.T) {
	value := rapid.SampledFrom(worldValues)
	return map[string]func(*rapid.T){
		"a user writes to a node": func(t *rapid.T) {
			w.edit(rapid.SampledFrom(worldNodes).Draw(t, "node"), rapid.SampledFrom(contestedKeys).Draw(t, "key"),
				value.Draw(t, "value"), rapid.IntRange(0, 2).Draw(t, "write, not remove") > 0)
		},
		"a user writes something else to a node": func(t *rapid.T) {
			w.edit(rapid.SampledFrom(worldNodes).Draw(t, "node"), rapid.SampledFrom(externalKeys).Draw(t, "key"),
				value.Draw(t, "value"), rapid.Bool().Draw(t, "write, not remove"))
		},
		"a user moves a node": func(t *rapid.T) {
			role := setting.LabelKey(tidekeeperv1.RoleLabelPrefix + rapid.SampledFrom(worldPools).Draw(t, "role"))
			w.edit(rapid.SampledFrom(worldNodes).Draw(t, "node"), role, "", rapid.Bool().Draw(t, "into the pool, not out of it"))
		},
		"a user applies a pool": func(t *rapid.T) {
			name, spec := rapid.SampledFrom(worldPools).Draw(t, "name"), drawSpec(t)
			clear(w.owners)
			if pool, ok := w.pools[name]; ok {
				pool.Spec, pool.Generation = spec, pool.Generation+1
				return
			}
			// Halving the tick (the step counter of the simulation) gives two pools created in
			// succession the same creation time.
			pool := objects.Pool(name).CreatedAt(w.tick / 2).Obj()
			pool.Spec, pool.Finalizers = spec, nil
			w.pools[name] = pool
			w.tick++
		},
		"a user deletes a pool": func(t *rapid.T) {
			w.delete(rapid.SampledFrom(worldPools).Draw(t, "name"))
		},
	}
}

func (w *world) delete(name string) {
	clear(w.owners)
	switch pool, ok := w.pools[name]; {
	case !ok || pool.DeletionTimestamp != nil:
	case len(pool.Finalizers) == 0:
		delete(w.pools, name)
	default:
		w.pools[name] = objects.PoolFrom(pool).Deleted().Obj()
	}
}

// history returns a simulated world after random actions of users and controllers.
func history(t *rapid.T) *world {
	w := drawWorld(t)
	actions := w.userActions()
	actions[""] = w.check
	for _, turn := range []string{"a controller works", "a controller works on", "a controller works still"} {
		actions[turn] = func(t *rapid.T) {
			w.do(t, rapid.SampledFrom(w.allWork()).Draw(t, "work"), drawPermissions(t, ""))
		}
	}
	actions["the controllers settle"] = func(t *rapid.T) { w.settle(t, "settle") }
	t.Repeat(actions)
	return w
}
