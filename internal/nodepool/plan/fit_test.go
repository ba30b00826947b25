// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPlansFit checks, for annotations of any size, that the API server accepts the planned
// annotations, that a pool is left out only if its annotations do not fit, and that all settings
// applied by the pools can be removed again.
func TestPlansFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 20, 30_000, 90_000, 140_000})
		theirs := strings.Repeat("t", size.Draw(t, "theirs"))
		node := objects.Node("n").Label("in", "1").Annotation("theirs", theirs).Obj()
		var pools []plan.PoolOnNode
		for i := range rapid.IntRange(1, 4).Draw(t, "pools") {
			name := fmt.Sprintf("p%d", i)
			p := objects.Pool(name).CreatedAt(i).MatchLabels("in", "1").Labels("l-"+name, "1").
				Annotations("a-"+name, strings.Repeat("x", size.Draw(t, "size")))
			pools = append(pools, plan.PoolOnNode{Pool: p.Obj(), Member: true})
		}
		nodePlan := plan.ForNode(node, pools)
		after := nodePlan.ApplyTo(node, objects.PatchTime)
		if errs := validation.ValidateAnnotations(after.Annotations, field.NewPath("annotations")); len(errs) > 0 {
			t.Fatalf("the API server would refuse it: %v", errs)
		}
		out := sets.New(nodePlan.AnnotationsFull...)
		for _, c := range pools {
			has := after.Labels["l-"+c.Pool.Name] == "1"
			if has == out.Has(c.Pool.Name) {
				t.Fatalf("%s is on the node: %v; with annotations full: %v", c.Pool.Name, has, nodePlan.AnnotationsFull)
			}
			if out.Has(c.Pool.Name) {
				rest := slices.DeleteFunc(slices.Clone(pools), func(other plan.PoolOnNode) bool { return other.Pool != c.Pool && out.Has(other.Pool.Name) })
				if alone := plan.Unlimited(node, rest); alone.Fits(node) {
					t.Fatalf("%s is left out although there is room", c.Pool.Name)
				}
			}
		}
		for i := range pools {
			gone := pools[i].Pool.DeepCopy()
			gone.DeletionTimestamp = &gone.CreationTimestamp
			pools[i] = plan.PoolOnNode{Pool: gone}
		}
		nodePlan = plan.ForNode(after, pools)
		after = nodePlan.ApplyTo(after, objects.PatchTime)
		if diff := cmp.Diff(map[string]string{"theirs": theirs}, after.Annotations); diff != "" {
			t.Fatalf("after the pools were deleted (-want +got):\n%s", diff)
		}
	})
}
