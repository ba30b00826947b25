// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// contestedKeys lists the keys that both pools and users may set. externalKeys lists the keys that
// only users set.
var (
	contestedKeys = []setting.Key{
		setting.LabelKey("l0"), setting.LabelKey("l1"), setting.LabelKey("l2"), setting.AnnotationKey("l0"), setting.AnnotationKey("a1"),
		setting.TaintKey("t0", "NoSchedule"), setting.TaintKey("t0", "NoExecute"), setting.TaintKey("t1", "PreferNoSchedule"),
	}
	externalKeys = []setting.Key{
		setting.LabelKey("f0"), setting.AnnotationKey("f0"), setting.TaintKey("f0", "NoSchedule"), setting.TaintKey("f1", "NoExecute"), setting.TaintKey("t1", "NoSchedule"),
	}
	worldValues = []string{"", "1", "2"}
	worldNodes  = []string{"n0", "n1"}
	worldPools  = []string{"p0", "p1", "p2", "p3"}
)

// place identifies a setting on a node.
type place struct {
	node string
	key  setting.Key
}

// written describes the last write to a setting of a node.
type written struct {
	tick  int
	value string
}

type world struct {
	nodes map[string]*corev1.Node
	pools map[string]*tidekeeperv1.NodePool
	// twins holds a copy of each node to which only the users' edits are applied.
	twins map[string]*corev1.Node

	tick int
	// byHand and byPool hold the last write to each place by a user and by a pool, respectively.
	// Removals by pools are not recorded.
	byHand, byPool map[place]written
	// owners lists, for each place, the pools that have written to it since the last user action,
	// in the order of their writes.
	owners map[place][]*tidekeeperv1.NodePool
}

func drawWorld(t *rapid.T) *world {
	w := &world{
		nodes: map[string]*corev1.Node{}, pools: map[string]*tidekeeperv1.NodePool{}, twins: map[string]*corev1.Node{},
		byHand: map[place]written{}, byPool: map[place]written{}, owners: map[place][]*tidekeeperv1.NodePool{},
	}
	for _, name := range worldNodes {
		w.nodes[name], w.twins[name] = objects.Node(name).Obj(), objects.Node(name).Obj()
		for _, s := range slices.Concat(contestedKeys, externalKeys) {
			if rapid.Bool().Draw(t, "has "+s.String()) {
				w.edit(name, s, rapid.SampledFrom(worldValues).Draw(t, "value"), true)
			}
		}
		for _, pool := range worldPools {
			if rapid.Bool().Draw(t, "role "+pool) {
				w.edit(name, setting.LabelKey(tidekeeperv1.RoleLabelPrefix+pool), "", true)
			}
		}
	}
	return w
}

func (w *world) clone() *world {
	c := &world{
		nodes: map[string]*corev1.Node{}, pools: map[string]*tidekeeperv1.NodePool{}, twins: map[string]*corev1.Node{},
		tick: w.tick, byHand: maps.Clone(w.byHand), byPool: maps.Clone(w.byPool), owners: map[place][]*tidekeeperv1.NodePool{},
	}
	for name := range w.nodes {
		c.nodes[name], c.twins[name] = w.nodes[name].DeepCopy(), w.twins[name].DeepCopy()
	}
	for name, pool := range w.pools {
		c.pools[name] = pool.DeepCopy()
	}
	return c
}
