// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPlanPuts(t *testing.T) {
	for _, row := range []planRow{
		{
			name: "a node that no pool selects is left alone",
			node: objects.Node("a").Label("zone", "9").Taint("gpu", "", objects.NoSchedule),
		},
		{
			name:  "a pool that asks for nothing writes nothing",
			node:  objects.Node("a").Role("worker"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Member()},
		},
		{
			name:    "a label that the node lacks is added and recorded",
			node:    objects.Node("a").Role("worker").Label("other", "1"),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Member()},
			want:    objects.Node("a").Role("worker").Label("other", "1").LabelOf("worker", "zone", "1"),
			changes: []string{"worker: added label zone"},
		},
		{
			name:    "an empty value is a value",
			node:    objects.Node("a"),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "").Annotations("note", "").Taint("gpu", "", objects.NoSchedule).Member()},
			want:    objects.Node("a").LabelOf("worker", "zone", "").AnnotationOf("worker", "note", "").TaintOf("worker", "gpu", "", objects.NoSchedule),
			changes: []string{"worker: added annotation note", "worker: added label zone", "worker: added taint gpu:NoSchedule"},
		},
		{
			name: "labels, annotations and taints are written in one patch",
			node: objects.Node("a"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").Annotations("note", "<b> \"x\"").
				Taint("dedicated", "worker", objects.NoSchedule).Taint("dedicated", "worker", objects.PreferNoSchedule).Member()},
			want: objects.Node("a").LabelOf("worker", "zone", "1").LabelOf("worker", "disk", "ssd").AnnotationOf("worker", "note", "<b> \"x\"").
				TaintOf("worker", "dedicated", "worker", objects.NoSchedule).TaintOf("worker", "dedicated", "worker", objects.PreferNoSchedule),
			changes: []string{"worker: added annotation note", "worker: added label disk", "worker: added label zone",
				"worker: added taint dedicated:NoSchedule", "worker: added taint dedicated:PreferNoSchedule"},
		},
		{
			name: "the same key as label, annotation and taint is three settings",
			node: objects.Node("a").Label("x", "human"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Annotations("x", "1").Taint("x", "2", objects.NoSchedule).
				Member()},
			want:    objects.Node("a").Label("x", "human").AnnotationOf("worker", "x", "1").TaintOf("worker", "x", "2", objects.NoSchedule),
			changes: []string{"worker: added annotation x", "worker: added taint x:NoSchedule"},
		},
		{
			name:  "a value that the pool has put there stays as it is",
			node:  objects.Node("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "", objects.NoSchedule),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", objects.NoSchedule).Member()},
		},
		{
			name:    "a changed value in the spec changes the value on the node",
			node:    objects.Node("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "2").Annotations("note", "y").Taint("gpu", "2", objects.NoSchedule).Member()},
			want:    objects.Node("a").LabelOf("worker", "zone", "2").AnnotationOf("worker", "note", "y").TaintOf("worker", "gpu", "2", objects.NoSchedule),
			changes: []string{"worker: updated annotation note", "worker: updated label zone", "worker: updated taint gpu:NoSchedule"},
		},
		{
			name:  "an equal value that was there before is not recorded",
			node:  objects.Node("a").Label("zone", "1").Annotation("note", "x").Taint("gpu", "", objects.NoSchedule),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "", objects.NoSchedule).Member()},
		},
		{
			name:    "another value that was there before is replaced",
			node:    objects.Node("a").Label("zone", "9").Annotation("note", "z").Taint("gpu", "9", objects.NoSchedule),
			pools:   []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", objects.NoSchedule).Member()},
			want:    objects.Node("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			changes: []string{"worker: replaced annotation note", "worker: replaced label zone", "worker: replaced taint gpu:NoSchedule"},
		},
		{
			name:     "nothing is added before it is a managed key",
			node:     objects.Node("a").Label("disk", "hdd"),
			pools:    []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").Taint("gpu", "", objects.NoSchedule).ManagingNothing().Member()},
			outdated: []string{"worker"},
		},
		{
			name:     "only the managed keys are added",
			node:     objects.Node("a"),
			pools:    []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1", "disk", "ssd").ManagingNothing().Managing(setting.LabelKey("disk"), setting.AnnotationKey("zone")).Member()},
			want:     objects.Node("a").LabelOf("worker", "disk", "ssd"),
			changes:  []string{"worker: added label disk"},
			outdated: []string{"worker"},
		},
		{
			name:     "nothing is added before the pool has its finalizer",
			node:     objects.Node("a").Role("worker"),
			pools:    []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").WithoutFinalizer().Member()},
			outdated: []string{"worker"},
		},
		{
			name:  "a pool that is being deleted adds nothing",
			node:  objects.Node("a").Role("worker"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Deleted().NoMember()},
		},
	} {
		row.run(t)
	}
}

func TestPlanPutsBack(t *testing.T) {
	pool := func() *objects.PoolBuilder {
		return objects.Pool("worker").Labels("zone", "1").Annotations("note", "x").Taint("gpu", "1", objects.NoSchedule)
	}
	right := func() *objects.NodeBuilder {
		return objects.Node("a").LabelOf("worker", "zone", "1").AnnotationOf("worker", "note", "x").TaintOf("worker", "gpu", "1", objects.NoSchedule)
	}
	recorded := func() *objects.NodeBuilder {
		return objects.Node("a").Owned("worker", setting.LabelKey("zone"), "1").Owned("worker", setting.AnnotationKey("note"), "x").
			Owned("worker", setting.TaintKey("gpu", "NoSchedule"), "1")
	}
	putBack := []string{"worker: restored annotation note", "worker: restored label zone", "worker: restored taint gpu:NoSchedule"}

	for _, row := range []planRow{
		{
			name:    "a value that was changed by hand",
			node:    recorded().Label("zone", "9").Annotation("note", "z").Taint("gpu", "9", objects.NoSchedule),
			pools:   []plan.PoolOnNode{pool().Member()},
			want:    right(),
			changes: putBack,
		},
		{
			name:    "a setting that was removed by hand",
			node:    recorded(),
			pools:   []plan.PoolOnNode{pool().Member()},
			want:    right(),
			changes: putBack,
		},
		{
			name:    "but a value that was changed by hand and in the spec is an update",
			node:    recorded().Label("zone", "9").Annotation("note", "x").Taint("gpu", "1", objects.NoSchedule),
			pools:   []plan.PoolOnNode{pool().Labels("zone", "2").Member()},
			want:    right().LabelOf("worker", "zone", "2"),
			changes: []string{"worker: updated label zone"},
		},
		{
			name:  "a value that was set by hand before the spec asks for it is not recorded",
			node:  objects.Node("a").Label("zone", "2").Owned("worker", setting.LabelKey("zone"), "1"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "2").Member()},
			want:  objects.Node("a").Label("zone", "2"),
		},
		{
			name:  "a record that was formatted by hand is rewritten in our form",
			node:  objects.Node("a").Label("zone", "1").OwnershipText("{ \"worker\": {\"labels\": {\"zone\": \"1\"}}}\n"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Member()},
			want:  objects.Node("a").LabelOf("worker", "zone", "1"),
		},
		{
			name:  "without a record, existing values are not the pool's",
			node:  objects.Node("a").Label("zone", "1").Label("disk", "hdd"),
			pools: []plan.PoolOnNode{objects.Pool("worker").Labels("zone", "1").Managing(setting.LabelKey("disk")).Member()},
		},
	} {
		row.run(t)
	}
}
