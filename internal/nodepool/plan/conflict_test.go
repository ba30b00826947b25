// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPlanConflicts(t *testing.T) {
	old := func() *objects.PoolBuilder { return objects.Pool("old").CreatedAt(1).Labels("zone", "1") }
	young := func() *objects.PoolBuilder { return objects.Pool("young").CreatedAt(2).Labels("zone", "2") }

	for _, row := range []planRow{
		{
			name:      "the older pool gets the key, the younger has a conflict",
			node:      objects.Node("a"),
			pools:     []plan.PoolOnNode{young().Member(), old().Member()},
			want:      objects.Node("a").LabelOf("old", "zone", "1"),
			changes:   []string{"old: added label zone"},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "the conflict remains when the node is in sync",
			node:      objects.Node("a").LabelOf("old", "zone", "1"),
			pools:     []plan.PoolOnNode{young().Member(), old().Member()},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "of two equally old pools the first by name gets it",
			node:      objects.Node("a"),
			pools:     []plan.PoolOnNode{objects.Pool("y").Labels("zone", "2").Member(), objects.Pool("x").Labels("zone", "1").Member()},
			want:      objects.Node("a").LabelOf("x", "zone", "1"),
			changes:   []string{"x: added label zone"},
			conflicts: []string{"y wants label zone of x"},
		},
		{
			name: "of three pools the oldest gets it, and both others have a conflict",
			node: objects.Node("a"),
			pools: []plan.PoolOnNode{young().Member(), old().Member(),
				objects.Pool("middle").CreatedAt(1).Labels("zone", "0").Member()},
			want:      objects.Node("a").LabelOf("middle", "zone", "0"),
			changes:   []string{"middle: added label zone"},
			conflicts: []string{"old wants label zone of middle", "young wants label zone of middle"},
		},
		{
			name:    "equal values are not a conflict; the older pool is recorded",
			node:    objects.Node("a"),
			pools:   []plan.PoolOnNode{young().Labels("zone", "1").Member(), old().Member()},
			want:    objects.Node("a").LabelOf("old", "zone", "1"),
			changes: []string{"old: added label zone"},
		},
		{
			name:      "the older takes a key from the younger when it begins to ask for it",
			node:      objects.Node("a").LabelOf("young", "zone", "2"),
			pools:     []plan.PoolOnNode{young().Member(), old().Member()},
			want:      objects.Node("a").LabelOf("old", "zone", "1"),
			changes:   []string{"old: added label zone"},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "but not before it manages the key",
			node:      objects.Node("a").LabelOf("young", "zone", "2"),
			pools:     []plan.PoolOnNode{young().Member(), old().ManagingNothing().Member()},
			conflicts: []string{"young wants label zone of old"},
			outdated:  []string{"old"},
		},
		{
			// If a younger pool could set the key first, it would replace the node's original value
			// for a short time, and that value would be lost.
			name:      "a key waits for the older pool even before that has its finalizer",
			node:      objects.Node("a").Label("zone", "1"),
			pools:     []plan.PoolOnNode{young().Member(), old().WithoutFinalizer().Member()},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:    "the younger takes over when the older no longer asks for it",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			pools:   []plan.PoolOnNode{young().Member(), objects.Pool("old").CreatedAt(1).Managing(setting.LabelKey("zone")).Member()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:    "the younger takes over when the older is deleted",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			pools:   []plan.PoolOnNode{young().Member(), old().Deleted().NoMember()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:    "the younger takes over when the node has left the older",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			pools:   []plan.PoolOnNode{young().Member(), old().NoMember()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:    "the younger takes over when only the record of the older is left",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			pools:   []plan.PoolOnNode{young().Member()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:  "an equal value is taken over without a change",
			node:  objects.Node("a").LabelOf("old", "zone", "1"),
			pools: []plan.PoolOnNode{young().Labels("zone", "1").Member(), old().Deleted().NoMember()},
			want:  objects.Node("a").LabelOf("young", "zone", "1"),
		},
		{
			// If ownership passed earlier and the younger pool were edited next, no pool would
			// manage the key and the label would stay forever.
			name:  "but not before the younger manages the key: until then it stays the older's",
			node:  objects.Node("a").LabelOf("old", "zone", "1"),
			pools: []plan.PoolOnNode{young().Labels("zone", "1").ManagingNothing().Member(), old().Deleted().NoMember()},
		},
		{
			name:  "nor before the younger has its finalizer",
			node:  objects.Node("a").LabelOf("old", "zone", "1"),
			pools: []plan.PoolOnNode{young().Labels("zone", "1").WithoutFinalizer().Member(), old().Deleted().NoMember()},
		},
		{
			name:     "nor is another value written over it before that",
			node:     objects.Node("a").LabelOf("old", "zone", "1"),
			pools:    []plan.PoolOnNode{young().ManagingNothing().Member(), old().Deleted().NoMember()},
			outdated: []string{"young"},
		},
		{
			name:  "a value written by hand over the older's is not recorded, even if the younger asks for it",
			node:  objects.Node("a").Label("zone", "2").Owned("old", setting.LabelKey("zone"), "1"),
			pools: []plan.PoolOnNode{young().Member(), old().Deleted().NoMember()},
			want:  objects.Node("a").Label("zone", "2"),
		},
		{
			name:  "the same key as a label of one pool and a taint of another is not a conflict",
			node:  objects.Node("a").LabelOf("old", "zone", "1").TaintOf("young", "zone", "2", objects.NoSchedule),
			pools: []plan.PoolOnNode{old().Member(), objects.Pool("young").CreatedAt(2).Taint("zone", "2", objects.NoSchedule).Member()},
		},
		{
			name:  "a taint key with two effects is not a conflict",
			node:  objects.Node("a").TaintOf("x", "gpu", "1", objects.NoSchedule).TaintOf("y", "gpu", "2", objects.PreferNoSchedule),
			pools: []plan.PoolOnNode{objects.Pool("x").Taint("gpu", "1", objects.NoSchedule).Member(), objects.Pool("y").Taint("gpu", "2", objects.PreferNoSchedule).Member()},
		},
		{
			name:      "a taint with two values is a conflict",
			node:      objects.Node("a").TaintOf("x", "gpu", "1", objects.NoSchedule),
			pools:     []plan.PoolOnNode{objects.Pool("x").Taint("gpu", "1", objects.NoSchedule).Member(), objects.Pool("y").Taint("gpu", "2", objects.NoSchedule).Member()},
			conflicts: []string{"y wants taint gpu:NoSchedule of x"},
		},
	} {
		row.run(t)
	}
}
