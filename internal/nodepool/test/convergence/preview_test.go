// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// TestSimulationMatchesControllers checks that the simulator predicts the final state of each node,
// including its ownership annotation, from any state that users have left.
func TestSimulationMatchesControllers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		simulator := preview.NewSimulator(slices.Collect(maps.Values(w.pools)))
		predicted := map[string]preview.Result{}
		for name, node := range w.nodes {
			before := node.DeepCopy()
			predicted[name] = simulator.Run(node)
			if diff := cmp.Diff(before, node); diff != "" {
				t.Fatalf("the simulation changed node %s (-before +after):\n%s", name, diff)
			}
		}
		w.settle(t, "settle")
		for name, node := range w.nodes {
			if diff := cmp.Diff(settingsOf(predicted[name].Node), settingsOf(node)); diff != "" {
				t.Fatalf("node %s (-predicted +actual):\n%s", name, diff)
			}
		}
	})
}

// TestPreviewIsTheDifference checks that the preview of a random change of pools shows, for each
// node, exactly the difference between the controllers' final states without and with the change.
func TestPreviewIsTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		changed := w.clone()
		act := rapid.SampledFrom([]string{"a user applies a pool", "a user deletes a pool"}).Draw(t, "change")
		changed.userActions()[act](t)
		nodes := []corev1.Node{}
		for _, name := range worldNodes {
			nodes = append(nodes, *w.nodes[name])
		}
		values := func(w *world) (list []*tidekeeperv1.NodePool) {
			for _, name := range worldPools {
				if pool := w.pools[name]; pool != nil {
					list = append(list, pool)
				}
			}
			return list
		}
		previews := preview.Nodes(values(w), values(changed), nodes)
		w.settle(t, "without")
		changed.settle(t, "with")
		for _, name := range worldNodes {
			want := settingsOf(w.nodes[name])
			i := slices.IndexFunc(previews, func(p preview.Node) bool { return p.Name == name })
			if i >= 0 {
				for _, c := range previews[i].Changes {
					at := c.SettingKey().String()
					if c.Action == preview.ActionRemove {
						delete(want, at)
					} else {
						want[at] = c.To
					}
				}
			}
			got := settingsOf(changed.nodes[name])
			record := setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation).String()
			delete(want, record)
			delete(got, record)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("node %s (-predicted +actual):\n%s", name, diff)
			}
		}
	})
}
