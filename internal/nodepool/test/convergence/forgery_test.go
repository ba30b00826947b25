// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPlanIsSafeAgainstForgery checks plans for nodes with an arbitrary forged ownership
// annotation. Such a plan must only remove settings that a pool manages, and must only write
// settings in the spec of a member pool. A second plan must be empty.
func TestPlanIsSafeAgainstForgery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, name := range worldPools {
			if !rapid.Bool().Draw(t, "exists") {
				continue
			}
			m := objects.Pool(name).CreatedAt(rapid.IntRange(0, 2).Draw(t, "age"))
			m.Spec(drawSpec(t))
			for _, s := range contestedKeys {
				if rapid.Bool().Draw(t, "manages") {
					m.Managing(s)
				}
			}
			switch rapid.IntRange(0, 5).Draw(t, "deleted or new") {
			case 0:
				m.Deleted()
			case 1:
				m.WithoutFinalizer()
			}
			w.pools[name] = m.Obj()
		}
		node := w.nodes["n0"]
		node.Annotations = objects.With(node.Annotations, tidekeeperv1.OwnershipAnnotation, drawForgery(t))
		forged, err := ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation])
		unreadable := err != nil

		var pools []plan.PoolOnNode
		for _, pool := range w.pools {
			member := pool.DeletionTimestamp == nil && rapid.Bool().Draw(t, "member")
			if _, named := forged[pool.Name]; named || member {
				may := drawPermissions(t, "")
				pools = append(pools, plan.PoolOnNode{Pool: pool, Member: member, MayEvict: may.mayEvict, TurnAt: objects.PatchTime, Emptied: may.emptied})
			}
		}
		nodePlan := plan.ForNode(node, pools)
		is := setting.Actual(node)
		for s := range nodePlan.Remove {
			if !slices.ContainsFunc(pools, func(c plan.PoolOnNode) bool {
				recorded, ok := forged[c.Pool.Name][s]
				return setting.Manages(c.Pool, s) && (unreadable || ok && value(is, s) == fmt.Sprintf("%q", recorded))
			}) {
				t.Fatalf("%s is removed because of the record alone: %s", s, node.Annotations[tidekeeperv1.OwnershipAnnotation])
			}
		}
		for s, want := range nodePlan.Set {
			if !slices.ContainsFunc(pools, func(c plan.PoolOnNode) bool {
				asks := false
				for asked, value := range setting.Desired(c.Pool) {
					asks = asks || asked == s && value == want
				}
				for _, taint := range plan.Taints(c.Pool) {
					asks = asks || setting.TaintKey(taint.Key, taint.Effect) == s && taint.Value == want
				}
				return asks && c.Member && len(c.Pool.Finalizers) > 0 && setting.Manages(c.Pool, s) && (c.MayEvict || c.Emptied || !s.IsNoExecute())
			}) {
				t.Fatalf("%s is written, which no member may: %s", s, node.Annotations[tidekeeperv1.OwnershipAnnotation])
			}
		}
		after := objects.ApplyPlan(t, &nodePlan, node)
		if again := plan.ForNode(after, pools); !again.Empty() || len(again.Changes) > 0 {
			t.Fatalf("after the plan, there is more to write: %s, then %s", nodePlan.Patch(node, objects.PatchTime), again.Patch(after, objects.PatchTime))
		}
		if diff := cmp.Diff(externalTaints(node), externalTaints(after), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("taints of other clients (-want +got):\n%s", diff)
		}
		for s := range is {
			if s == (setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation)) || slices.Contains(contestedKeys, s) {
				continue
			}
			if now := setting.Actual(after); value(is, s) != value(now, s) {
				t.Fatalf("%s was %s and is %s", s, value(is, s), value(now, s))
			}
		}
	})
}

// drawForgery returns a random value for the ownership annotation, which any client with permission
// to edit nodes could write.
func drawForgery(t *rapid.T) string {
	if rapid.IntRange(0, 4).Draw(t, "unreadable") == 0 {
		return rapid.SampledFrom([]string{"{", "[]", " ", `{"p0":1}`, "\x00"}).Draw(t, "text")
	}
	r := ownership.Record{}
	all := append(slices.Concat(contestedKeys, externalKeys),
		setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation), setting.LabelKey(""), setting.Key{Kind: setting.Taint, Name: "t0"}, setting.TaintKey("", ""), setting.LabelKey(tidekeeperv1.RoleLabelPrefix+"p0"))
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		s := rapid.SampledFrom(all).Draw(t, "key")
		r.Put(rapid.SampledFrom(append([]string{"ghost", ""}, worldPools...)).Draw(t, "pool"),
			s, ownership.DigestOf(s, rapid.SampledFrom(worldValues).Draw(t, "value")))
	}
	var closed ownership.Closed
	for range rapid.IntRange(0, 3).Draw(t, "times") {
		closed = closed.With(rapid.SampledFrom(append([]string{"ghost", ""}, worldPools...)).Draw(t, "closed by"),
			rapid.SampledFrom([]string{"t0", "t1", ""}).Draw(t, "closed for"), objects.Epoch)
	}
	return r.Text(closed)
}
