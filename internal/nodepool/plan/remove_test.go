// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPlanRemoves(t *testing.T) {
	full := func() *objects.NodeBuilder {
		return objects.Node("a").Label("other", "1").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", objects.NoSchedule)
	}
	all := []setting.Key{setting.LabelKey("zone"), setting.AnnotationKey("note"), setting.TaintKey("gpu", "NoSchedule")}
	bare := func() *objects.NodeBuilder { return objects.Node("a").Label("other", "1") }
	removed := []string{"worker: removed annotation note", "worker: removed label zone", "worker: removed taint gpu:NoSchedule"}

	for _, row := range []planRow{
		{
			name:    "what is removed from the spec",
			node:    full(),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Member()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "only what is removed from the spec",
			node:    full(),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Labels("zone", "1").Member()},
			want:    bare().LabelOf("worker", "zone", "1"),
			changes: []string{"worker: removed annotation note", "worker: removed taint gpu:NoSchedule"},
		},
		{
			name:    "everything, from a node that has left the pool",
			node:    full(),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", objects.NoSchedule).NoMember()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "everything if the pool is deleted",
			node:    full(),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", objects.NoSchedule).Deleted().NoMember()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "an empty value too",
			node:    objects.Node("a").LabelOf("worker", "zone", "").TaintOf("worker", "gpu", "", objects.NoSchedule),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Member()},
			want:    objects.Node("a"),
			changes: []string{"worker: removed label zone", "worker: removed taint gpu:NoSchedule"},
		},
		{
			name:    "a NoExecute taint at once: removing one evicts no pods",
			node:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoExecute),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "1", objects.NoExecute).NoMember()},
			want:    objects.Node("a"),
			changes: []string{"worker: removed taint gpu:NoExecute"},
		},
		{
			name:    "one effect of a taint, and adds the other",
			node:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "1", objects.PreferNoSchedule).Managing(all...).Member()},
			want:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.PreferNoSchedule),
			changes: []string{"worker: removed taint gpu:NoSchedule", "worker: added taint gpu:PreferNoSchedule"},
		},
		{
			name:  "only the record of a value that was overwritten by hand",
			node:  bare().Label("zone", "9").Taint("gpu", "9", objects.NoSchedule).Owned("worker", setting.LabelKey("zone"), "1").Owned("worker", setting.TaintKey("gpu", "NoSchedule"), "1"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Member()},
			want:  bare().Label("zone", "9").Taint("gpu", "9", objects.NoSchedule),
		},
		{
			name:  "only the record of a setting that was removed by hand",
			node:  bare().Owned("worker", setting.LabelKey("zone"), "").Owned("worker", setting.TaintKey("gpu", "NoSchedule"), "1"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Deleted().NoMember()},
			want:  bare(),
		},
		{
			name:  "not an equal value that was there before",
			node:  bare().Label("zone", "1"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Deleted().NoMember()},
		},
		{
			name: "of two pools only the settings of one",
			node: objects.Node("a").LabelOf("worker", "zone", "1").LabelOf("gpu", "disk", "ssd"),
			pools: []plan.PoolOnNode{
				objects.Pool("worker").Labels("zone", "1").NoMember(),
				objects.Pool("gpu").Labels("disk", "ssd").Member(),
			},
			want:    objects.Node("a").LabelOf("gpu", "disk", "ssd"),
			changes: []string{"worker: removed label zone"},
		},
	} {
		row.run(t)
	}
}

func TestPlanDistrustsTheRecord(t *testing.T) {
	zone := setting.LabelKey("zone")
	for _, row := range []planRow{
		{
			name:  "a forged entry removes nothing that the pool does not manage",
			node:  objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "", objects.NoSchedule),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").NoMember()},
		},
		{
			name:  "nor does one for a pool that is being deleted; the entry is dropped, or the deletion would never finish",
			node:  objects.Node("a").LabelOf("worker", "zone", "1"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").Deleted().NoMember()},
			want:  objects.Node("a").Label("zone", "1"),
		},
		{
			name:  "nor one for a pool that does not exist",
			node:  objects.Node("a").LabelOf("ghost", "zone", "1").LabelOf("worker", "disk", "ssd"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").Member()},
		},
		{
			name:  "an entry with another value than the node's removes nothing",
			node:  objects.Node("a").Label("zone", "1").Owned("worker", zone, "2"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Managing(zone).Member()},
			want:  objects.Node("a").Label("zone", "1"),
		},
		{
			name:  "managing a label is not managing the annotation or taint with that key",
			node:  objects.Node("a").AnnotationOf("worker", "zone", "1").TaintOf("worker", "zone", "1", objects.NoSchedule),
			pools: []plan.PoolOnNode{objects.Pool("worker").Managing(zone, setting.LabelKey("zone:NoSchedule")).Member()},
		},
		{
			name:  "a key of the kubelet is safe, as no pool can manage it",
			node:  objects.Node("a").LabelOf("worker", "kubernetes.io/hostname", "a").TaintOf("worker", "node.kubernetes.io/unreachable", "", objects.NoExecute),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").NoMember()},
		},
		{
			name:  "an unreadable record is inferred from what the pools ask for and the node has",
			node:  objects.Node("a").Label("zone", "1").Label("other", "1").Taint("gpu", "", objects.NoSchedule).OwnershipText("{"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Taint("gpu", "", objects.NoSchedule).Member()},
			want:  objects.Node("a").LabelOf("worker", "zone", "1").Label("other", "1").TaintOf("worker", "gpu", "", objects.NoSchedule),
		},
		{
			name:    "and what the node lacks is added in the same patch",
			node:    objects.Node("a").Label("zone", "1").Label("disk", "hdd").OwnershipText("[]"),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").Annotations("note", "x").Member()},
			want:    objects.Node("a").LabelOf("worker", "zone", "1").LabelOf("worker", "disk", "ssd").AnnotationOf("worker", "note", "x"),
			changes: []string{"worker: added annotation note", "worker: replaced label disk"},
		},
		{
			name:    "a pool that is being deleted removes what it asked for, although the record is unreadable",
			node:    objects.Node("a").Label("zone", "1").Label("disk", "hdd").OwnershipText("?"),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").Deleted().NoMember()},
			want:    objects.Node("a").Label("disk", "hdd"),
			changes: []string{"worker: removed label zone"},
		},
		{
			name: "an unreadable record on a node without pools is removed",
			node: objects.Node("a").Label("zone", "1").OwnershipText("{"),
			want: objects.Node("a").Label("zone", "1"),
		},
		{
			name:  "with two pools, the inferred owner is the older",
			node:  objects.Node("a").Label("zone", "1").OwnershipText("{"),
			pools: []plan.PoolOnNode{objects.Pool("young").CreatedAt(2).Labels("zone", "1").Member(), objects.Pool("old").CreatedAt(1).Labels("zone", "1").Member()},
			want:  objects.Node("a").LabelOf("old", "zone", "1"),
		},
		{
			name:  "a forged second owner of a key that a pool has is dropped",
			node:  objects.Node("a").LabelOf("worker", "zone", "1").Owned("ghost", zone, "1"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Member()},
			want:  objects.Node("a").LabelOf("worker", "zone", "1"),
		},
		{
			name:  "a forged entry about the record itself removes nothing",
			node:  objects.Node("a").Owned("worker", setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation), "x"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").NoMember()},
		},
	} {
		row.run(t)
	}
}
