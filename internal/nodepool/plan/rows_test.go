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

// planRow is a test case of plan tables: a node, its pools, and the expected result.
type planRow struct {
	name  string
	node  *objects.NodeBuilder
	pools []plan.PoolOnNode

	// want is the node after the plan has been applied, or nil if the plan must be empty.
	want *objects.NodeBuilder
	// changes lists the expected changes, such as "worker: added label zone".
	changes []string
	// conflicts lists the expected conflicts, such as "young wants label zone of old".
	conflicts []string
	// outdated, pending and evicting list names of pools. If outdated is nil, it defaults to the
	// member pools that appear in changes.
	outdated, pending, evicting []string
}

func (row planRow) run(t *testing.T) {
	t.Helper()
	t.Run(row.name, func(t *testing.T) {
		before := row.node.Obj()
		nodePlan := plan.ForNode(before, row.pools)
		if diff := cmp.Diff(row.node.Obj(), before); diff != "" {
			t.Fatalf("ForNode changed the node (-before +after):\n%s", diff)
		}

		after := before
		if row.want == nil {
			if !nodePlan.Empty() {
				t.Errorf("the node is in sync, but is written: %s", nodePlan.Patch(before, objects.PatchTime))
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
		if diff := cmp.Diff(row.pending, nodePlan.EvictionPending, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("evictions pending (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.evicting, nodePlan.Evicting, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("evicting (-want +got):\n%s", diff)
		}
		outdated := row.outdated
		if outdated == nil {
			outdated = changedMembers(row)
		}
		if diff := cmp.Diff(outdated, nodePlan.Outdated, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("outdated (-want +got):\n%s", diff)
		}

		again := plan.ForNode(after, row.pools)
		if !again.Empty() || len(again.Changes) > 0 {
			t.Errorf("after the plan, there is more to write: %s", again.Patch(after, objects.PatchTime))
		}
		slices.Reverse(row.pools)
		reversed := plan.ForNode(before, row.pools)
		if diff := cmp.Diff(nodePlan, reversed, cmp.AllowUnexported(plan.NodePlan{}, plan.Change{}, plan.Conflict{}, setting.Key{})); diff != "" {
			t.Errorf("the plan depends on the order of the pools (-one +other):\n%s", diff)
		}
	})
}

// ignoreVersion excludes the resourceVersion from comparisons, because it changes with every write.
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
		if slices.ContainsFunc(row.pools, func(c plan.PoolOnNode) bool { return c.Member && c.Pool.Name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
