// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// planRow is one row of a table: with these claims, the node becomes want.
type planRow struct {
	name   string
	node   *objects.NodeMaker
	claims []plan.PoolOnNode

	// want is the node afterwards; nil if it is to stay as it is, with no
	// write at all.
	want *objects.NodeMaker
	// changes in the words of an event: "worker: added label zone".
	changes []string
	// conflicts as "young wants label zone of old".
	conflicts []string
	// unshaped, heldBack and evicts are names of pools. unshaped may be left
	// out if it is just the members among the changes.
	unshaped, heldBack, evicts []string
}

func (row planRow) run(t *testing.T) {
	t.Helper()
	t.Run(row.name, func(t *testing.T) {
		before := row.node.Obj()
		nodePlan := plan.ForNode(before, row.claims)
		if diff := cmp.Diff(row.node.Obj(), before); diff != "" {
			t.Fatalf("planning changed the node itself (-before +after):\n%s", diff)
		}

		after := before
		if row.want == nil {
			if !nodePlan.Empty() {
				t.Errorf("the node is right as it is, but is written: %s", nodePlan.Patch(before, objects.PatchTime))
			}
		} else {
			if nodePlan.Empty() {
				t.Error("the plan is empty")
			}
			after = objects.ApplyPlan(t, &nodePlan, before)
			want := row.want.Obj()
			if diff := cmp.Diff(want, after, cmpopts.EquateEmpty(), ignoreVersion); diff != "" {
				t.Errorf("the node afterwards (-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff(row.changes, changesText(nodePlan.Changes), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.conflicts, conflictsText(t, before.Name, nodePlan.Conflicts), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("conflicts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.heldBack, nodePlan.EvictionPending, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("held back (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.evicts, nodePlan.Evicting, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("evicts (-want +got):\n%s", diff)
		}
		unshaped := row.unshaped
		if unshaped == nil {
			unshaped = changedMembers(row)
		}
		if diff := cmp.Diff(unshaped, nodePlan.Outdated, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("unshaped (-want +got):\n%s", diff)
		}

		again := plan.ForNode(after, row.claims)
		if !again.Empty() || len(again.Changes) > 0 {
			t.Errorf("carried out, the plan is not done: %s", again.Patch(after, objects.PatchTime))
		}
		slices.Reverse(row.claims)
		reversed := plan.ForNode(before, row.claims)
		if diff := cmp.Diff(nodePlan, reversed, cmp.AllowUnexported(plan.NodePlan{}, plan.Change{}, plan.Conflict{}, setting.Key{})); diff != "" {
			t.Errorf("the plan depends on the order of the pools (-one +other):\n%s", diff)
		}
	})
}

// ignoreVersion: carrying a plan out makes a new version of the node.
var ignoreVersion = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "ObjectMeta.ResourceVersion" }, cmp.Ignore())

func changesText(changes []plan.Change) []string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, fmt.Sprintf("%s: %s %s", c.Pool, c.Kind, c.Key))
	}
	return texts
}

func conflictsText(t *testing.T, node string, conflicts []plan.Conflict) []string {
	t.Helper()
	var texts []string
	for _, c := range conflicts {
		if c.Node != node {
			t.Errorf("conflict on node %q, but the plan is for %q", c.Node, node)
		}
		texts = append(texts, fmt.Sprintf("%s wants %s of %s", c.Pool, c.Key, c.Owner))
	}
	return texts
}

func changedMembers(row planRow) []string {
	var names []string
	for _, text := range row.changes {
		name, _, _ := strings.Cut(text, ":")
		if slices.ContainsFunc(row.claims, func(c plan.PoolOnNode) bool { return c.Member && c.Pool.Name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
