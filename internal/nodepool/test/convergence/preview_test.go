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

// What is foretold is what the controllers do: from wherever people leave the
// world, each node comes to the end that was foretold, record and all.
func TestFutureIsWhatComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		f := preview.NewSimulator(slices.Collect(maps.Values(w.pools)))
		foretold := map[string]preview.Result{}
		for name, node := range w.nodes {
			before := node.DeepCopy()
			foretold[name] = f.Run(node)
			if diff := cmp.Diff(before, node); diff != "" {
				t.Fatalf("foretelling changed node %s (-before +after):\n%s", name, diff)
			}
		}
		w.rest(t, "rest")
		for name, node := range w.nodes {
			if diff := cmp.Diff(shapeOf(foretold[name].Node), shapeOf(node)); diff != "" {
				t.Fatalf("node %s (-foretold +came):\n%s", name, diff)
			}
		}
	})
}

// A preview of any change in any world says of each node just what differs
// between the two ends that the controllers come to.
func TestPreviewIsTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := history(t)
		changed := w.clone()
		act := rapid.SampledFrom([]string{"somebody applies a pool", "somebody deletes a pool"}).Draw(t, "change")
		changed.people()[act](t)
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
		w.rest(t, "without")
		changed.rest(t, "with")
		for _, name := range worldNodes {
			want := shapeOf(w.nodes[name])
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
			got := shapeOf(changed.nodes[name])
			record := setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation).String()
			delete(want, record)
			delete(got, record)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("node %s (-foretold +came):\n%s", name, diff)
			}
		}
	})
}
