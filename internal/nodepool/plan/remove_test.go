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
	full := func() *objects.NodeMaker {
		return objects.Node("a").Label("other", "1").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", objects.NoSchedule)
	}
	all := []setting.Key{setting.LabelKey("zone"), setting.AnnotationKey("note"), setting.TaintKey("gpu", "NoSchedule")}
	bare := func() *objects.NodeMaker { return objects.Node("a").Label("other", "1") }
	removed := []string{"worker: removed annotation note", "worker: removed label zone", "worker: removed taint gpu:NoSchedule"}

	for _, row := range []planRow{
		{
			name:    "what is taken out of the spec",
			node:    full(),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Member()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "only what is taken out of the spec",
			node:    full(),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Labels("zone", "1").Member()},
			want:    bare().LabelOf("worker", "zone", "1"),
			changes: []string{"worker: removed annotation note", "worker: removed taint gpu:NoSchedule"},
		},
		{
			name:    "everything, from a node that has left the pool",
			node:    full(),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", objects.NoSchedule).NoMember()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "everything, when the pool is deleted",
			node:    full(),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", objects.NoSchedule).Deleted().NoMember()},
			want:    bare(),
			changes: removed,
		},
		{
			name:    "an empty value too",
			node:    objects.Node("a").LabelOf("worker", "zone", "").TaintOf("worker", "gpu", "", objects.NoSchedule),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Member()},
			want:    objects.Node("a"),
			changes: []string{"worker: removed label zone", "worker: removed taint gpu:NoSchedule"},
		},
		{
			name:    "a NoExecute taint at once: taking one off evicts nobody",
			node:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoExecute),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "1", objects.NoExecute).NoMember()},
			want:    objects.Node("a"),
			changes: []string{"worker: removed taint gpu:NoExecute"},
		},
		{
			name:    "one effect of a taint, and puts the other",
			node:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Taint("gpu", "1", objects.PreferNoSchedule).Managing(all...).Member()},
			want:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.PreferNoSchedule),
			changes: []string{"worker: removed taint gpu:NoSchedule", "worker: added taint gpu:PreferNoSchedule"},
		},
		{
			name:   "only the record, of what a person wrote over",
			node:   bare().Label("zone", "9").Taint("gpu", "9", objects.NoSchedule).Owned("worker", setting.LabelKey("zone"), "1").Owned("worker", setting.TaintKey("gpu", "NoSchedule"), "1"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Member()},
			want:   bare().Label("zone", "9").Taint("gpu", "9", objects.NoSchedule),
		},
		{
			name:   "only the record, of what a person removed",
			node:   bare().Owned("worker", setting.LabelKey("zone"), "").Owned("worker", setting.TaintKey("gpu", "NoSchedule"), "1"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Managing(all...).Deleted().NoMember()},
			want:   bare(),
		},
		{
			name:   "nothing of an equal value that was there before",
			node:   bare().Label("zone", "1"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Deleted().NoMember()},
		},
		{
			name: "of two pools only what the one has put there",
			node: objects.Node("a").LabelOf("worker", "zone", "1").LabelOf("gpu", "disk", "ssd"),
			claims: []plan.PoolOnNode{
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
			name:   "a forged entry takes off nothing that the pool does not vouch for",
			node:   objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "", objects.NoSchedule),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").NoMember()},
		},
		{
			name:   "nor does one for a pool that is being deleted; the pool lets go of it, or it could never end",
			node:   objects.Node("a").LabelOf("worker", "zone", "1"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").Deleted().NoMember()},
			want:   objects.Node("a").Label("zone", "1"),
		},
		{
			name:   "nor one for a pool that does not exist",
			node:   objects.Node("a").LabelOf("ghost", "zone", "1").LabelOf("worker", "disk", "ssd"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").Member()},
		},
		{
			name:   "an entry of another value than the node's takes nothing off",
			node:   objects.Node("a").Label("zone", "1").Owned("worker", zone, "2"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Managing(zone).Member()},
			want:   objects.Node("a").Label("zone", "1"),
		},
		{
			name:   "vouching for a label is not vouching for the annotation or taint of that key",
			node:   objects.Node("a").AnnotationOf("worker", "zone", "1").TaintOf("worker", "zone", "1", objects.NoSchedule),
			claims: []plan.PoolOnNode{objects.Pool("worker").Managing(zone, setting.LabelKey("zone:NoSchedule")).Member()},
		},
		{
			name:   "a key of the kubelet is safe as no pool can vouch for it",
			node:   objects.Node("a").LabelOf("worker", "kubernetes.io/hostname", "a").TaintOf("worker", "node.kubernetes.io/unreachable", "", objects.NoExecute),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").NoMember()},
		},
		{
			name:   "an unreadable record is made anew from what the pools ask for and the node has",
			node:   objects.Node("a").Label("zone", "1").Label("other", "1").Taint("gpu", "", objects.NoSchedule).OwnershipText("{"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Taint("gpu", "", objects.NoSchedule).Member()},
			want:   objects.Node("a").LabelOf("worker", "zone", "1").Label("other", "1").TaintOf("worker", "gpu", "", objects.NoSchedule),
		},
		{
			name:    "and what the node lacks is put there in the same write",
			node:    objects.Node("a").Label("zone", "1").Label("disk", "hdd").OwnershipText("[]"),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").Annotations("note", "x").Member()},
			want:    objects.Node("a").LabelOf("worker", "zone", "1").LabelOf("worker", "disk", "ssd").AnnotationOf("worker", "note", "x"),
			changes: []string{"worker: added annotation note", "worker: replaced label disk"},
		},
		{
			name:    "a pool that is being deleted takes off what it asked for, though the record is unreadable",
			node:    objects.Node("a").Label("zone", "1").Label("disk", "hdd").OwnershipText("?"),
			claims:  []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").Deleted().NoMember()},
			want:    objects.Node("a").Label("disk", "hdd"),
			changes: []string{"worker: removed label zone"},
		},
		{
			name: "an unreadable record on a node of no pool goes away",
			node: objects.Node("a").Label("zone", "1").OwnershipText("{"),
			want: objects.Node("a").Label("zone", "1"),
		},
		{
			name:   "with two pools made anew, the older has it",
			node:   objects.Node("a").Label("zone", "1").OwnershipText("{"),
			claims: []plan.PoolOnNode{objects.Pool("young").CreatedAt(2).Labels("zone", "1").Member(), objects.Pool("old").CreatedAt(1).Labels("zone", "1").Member()},
			want:   objects.Node("a").LabelOf("old", "zone", "1"),
		},
		{
			name:   "a forged second holder of a key that a pool has is dropped",
			node:   objects.Node("a").LabelOf("worker", "zone", "1").Owned("ghost", zone, "1"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Member()},
			want:   objects.Node("a").LabelOf("worker", "zone", "1"),
		},
		{
			name:   "a forged entry about the record itself takes off nothing",
			node:   objects.Node("a").Owned("worker", setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation), "x"),
			claims: []plan.PoolOnNode{objects.Pool("worker").Labels("disk", "ssd").NoMember()},
		},
	} {
		row.run(t)
	}
}
