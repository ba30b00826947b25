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
	old := func() *objects.PoolMaker { return objects.Pool("old").CreatedAt(1).Labels("zone", "1") }
	young := func() *objects.PoolMaker { return objects.Pool("young").CreatedAt(2).Labels("zone", "2") }

	for _, row := range []planRow{
		{
			name:      "the older pool has the key, the younger says so",
			node:      objects.Node("a"),
			claims:    []plan.PoolOnNode{young().Member(), old().Member()},
			want:      objects.Node("a").LabelOf("old", "zone", "1"),
			changes:   []string{"old: added label zone"},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "and goes on saying so when the node is right",
			node:      objects.Node("a").LabelOf("old", "zone", "1"),
			claims:    []plan.PoolOnNode{young().Member(), old().Member()},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "of two equally old pools the first by name has it",
			node:      objects.Node("a"),
			claims:    []plan.PoolOnNode{objects.Pool("y").Labels("zone", "2").Member(), objects.Pool("x").Labels("zone", "1").Member()},
			want:      objects.Node("a").LabelOf("x", "zone", "1"),
			changes:   []string{"x: added label zone"},
			conflicts: []string{"y wants label zone of x"},
		},
		{
			name: "of three pools the oldest has it, against both others",
			node: objects.Node("a"),
			claims: []plan.PoolOnNode{young().Member(), old().Member(),
				objects.Pool("middle").CreatedAt(1).Labels("zone", "0").Member()},
			want:      objects.Node("a").LabelOf("middle", "zone", "0"),
			changes:   []string{"middle: added label zone"},
			conflicts: []string{"old wants label zone of middle", "young wants label zone of middle"},
		},
		{
			name:    "equal values are no conflict; the older has it on record",
			node:    objects.Node("a"),
			claims:  []plan.PoolOnNode{young().Labels("zone", "1").Member(), old().Member()},
			want:    objects.Node("a").LabelOf("old", "zone", "1"),
			changes: []string{"old: added label zone"},
		},
		{
			name:      "the older takes a key from the younger when it begins to ask for it",
			node:      objects.Node("a").LabelOf("young", "zone", "2"),
			claims:    []plan.PoolOnNode{young().Member(), old().Member()},
			want:      objects.Node("a").LabelOf("old", "zone", "1"),
			changes:   []string{"old: added label zone"},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:      "but not before its status vouches for the key",
			node:      objects.Node("a").LabelOf("young", "zone", "2"),
			claims:    []plan.PoolOnNode{young().Member(), old().ManagingNothing().Member()},
			conflicts: []string{"young wants label zone of old"},
			unshaped:  []string{"old"},
		},
		{
			// Or else a younger pool that is looked at first has the key for a
			// moment, and what was there before is lost.
			name:      "a key waits for the older pool also before that one holds its finalizer",
			node:      objects.Node("a").Label("zone", "1"),
			claims:    []plan.PoolOnNode{young().Member(), old().WithoutFinalizer().Member()},
			conflicts: []string{"young wants label zone of old"},
		},
		{
			name:    "the younger takes over when the older does not ask any more",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			claims:  []plan.PoolOnNode{young().Member(), objects.Pool("old").CreatedAt(1).Managing(setting.LabelKey("zone")).Member()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:    "the younger takes over when the older is deleted",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			claims:  []plan.PoolOnNode{young().Member(), old().Deleted().NoMember()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:    "the younger takes over when the node has left the older",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			claims:  []plan.PoolOnNode{young().Member(), old().NoMember()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:    "the younger takes over when the older is gone without a trace but the record",
			node:    objects.Node("a").LabelOf("old", "zone", "1"),
			claims:  []plan.PoolOnNode{young().Member()},
			want:    objects.Node("a").LabelOf("young", "zone", "2"),
			changes: []string{"young: added label zone"},
		},
		{
			name:   "an equal value is taken over without a change",
			node:   objects.Node("a").LabelOf("old", "zone", "1"),
			claims: []plan.PoolOnNode{young().Labels("zone", "1").Member(), old().Deleted().NoMember()},
			want:   objects.Node("a").LabelOf("young", "zone", "1"),
		},
		{
			// Or else nobody vouches for it any more if the younger is edited
			// next: the label stays for good.
			name:   "but not before the younger's status vouches for the key: until then it stays the older's",
			node:   objects.Node("a").LabelOf("old", "zone", "1"),
			claims: []plan.PoolOnNode{young().Labels("zone", "1").ManagingNothing().Member(), old().Deleted().NoMember()},
		},
		{
			name:   "nor before the younger holds its finalizer",
			node:   objects.Node("a").LabelOf("old", "zone", "1"),
			claims: []plan.PoolOnNode{young().Labels("zone", "1").WithoutFinalizer().Member(), old().Deleted().NoMember()},
		},
		{
			name:     "nor is another value written over it before that",
			node:     objects.Node("a").LabelOf("old", "zone", "1"),
			claims:   []plan.PoolOnNode{young().ManagingNothing().Member(), old().Deleted().NoMember()},
			unshaped: []string{"young"},
		},
		{
			name:   "what a person wrote over the older's value is nobody's, also if the younger asks for just that",
			node:   objects.Node("a").Label("zone", "2").Owned("old", setting.LabelKey("zone"), "1"),
			claims: []plan.PoolOnNode{young().Member(), old().Deleted().NoMember()},
			want:   objects.Node("a").Label("zone", "2"),
		},
		{
			name:   "a key of two pools, one of them a label and one a taint, is no conflict",
			node:   objects.Node("a").LabelOf("old", "zone", "1").TaintOf("young", "zone", "2", objects.NoSchedule),
			claims: []plan.PoolOnNode{old().Member(), objects.Pool("young").CreatedAt(2).Taint("zone", "2", objects.NoSchedule).Member()},
		},
		{
			name:   "a taint key with two effects is no conflict",
			node:   objects.Node("a").TaintOf("x", "gpu", "1", objects.NoSchedule).TaintOf("y", "gpu", "2", objects.PreferNoSchedule),
			claims: []plan.PoolOnNode{objects.Pool("x").Taint("gpu", "1", objects.NoSchedule).Member(), objects.Pool("y").Taint("gpu", "2", objects.PreferNoSchedule).Member()},
		},
		{
			name:      "a taint with two values is one",
			node:      objects.Node("a").TaintOf("x", "gpu", "1", objects.NoSchedule),
			claims:    []plan.PoolOnNode{objects.Pool("x").Taint("gpu", "1", objects.NoSchedule).Member(), objects.Pool("y").Taint("gpu", "2", objects.NoSchedule).Member()},
			conflicts: []string{"y wants taint gpu:NoSchedule of x"},
		},
	} {
		row.run(t)
	}
}
