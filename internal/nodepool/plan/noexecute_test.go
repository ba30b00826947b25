// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPlanHoldsBackNoExecute(t *testing.T) {
	pool := func() *objects.PoolBuilder {
		return objects.Pool("worker").Labels("zone", "1").Taint("gpu", "1", objects.NoExecute)
	}
	gpu := setting.TaintKey("gpu", "NoExecute")

	for _, row := range []planRow{
		{
			name:    "waits until it is allowed, and the other settings are added at once",
			node:    objects.Node("a"),
			pools:   []plan.PoolOnNode{pool().Taint("gpu", "1", objects.NoSchedule).Member()},
			want:    objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			changes: []string{"worker: added label zone", "worker: added taint gpu:NoSchedule"},
			pending: []string{"worker"},
		},
		{
			name:     "without a write if there is nothing else to do",
			node:     objects.Node("a").LabelOf("worker", "zone", "1"),
			pools:    []plan.PoolOnNode{pool().Member()},
			pending:  []string{"worker"},
			outdated: []string{"worker"},
		},
		{
			name:  "is added with the time once it is allowed",
			node:  objects.Node("a").LabelOf("worker", "zone", "1"),
			pools: []plan.PoolOnNode{pool().Evictor()},
			want: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", gpu, "1"),
			changes:  []string{"worker: added taint gpu:NoExecute"},
			evicting: []string{"worker"},
		},
		{
			name:     "also waits when its value changes: that may evict other pods",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "0", objects.NoExecute),
			pools:    []plan.PoolOnNode{pool().Member()},
			pending:  []string{"worker"},
			outdated: []string{"worker"},
		},
		{
			name: "and a change gets its own time",
			node: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "0", objects.NoExecute, objects.PatchTime.Add(-time.Hour)).
				Owned("worker", gpu, "0"),
			pools: []plan.PoolOnNode{pool().Evictor()},
			want: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", gpu, "1"),
			changes:  []string{"worker: updated taint gpu:NoExecute"},
			evicting: []string{"worker"},
		},
		{
			name:     "also waits after it was removed by hand",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").Owned("worker", gpu, "1"),
			pools:    []plan.PoolOnNode{pool().Member()},
			pending:  []string{"worker"},
			outdated: []string{"worker"},
		},
		{
			name: "once it is there it stays, allowed or not",
			node: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime.Add(-time.Hour)).
				Owned("worker", gpu, "1"),
			pools: []plan.PoolOnNode{pool().Member()},
		},
		{
			name:     "does not wait for a turn before it is managed",
			node:     objects.Node("a").LabelOf("worker", "zone", "1"),
			pools:    []plan.PoolOnNode{pool().ManagingNothing().Managing(setting.LabelKey("zone")).Member()},
			outdated: []string{"worker"},
		},
		{
			name:     "a weaker taint of the same key stays until then, with its record",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			pools:    []plan.PoolOnNode{pool().Managing(setting.TaintKey("gpu", objects.NoSchedule)).Member()},
			pending:  []string{"worker"},
			outdated: []string{"worker"},
		},
		{
			name:     "and stays before the stronger one is managed",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			pools:    []plan.PoolOnNode{pool().ManagingNothing().Managing(setting.LabelKey("zone"), setting.TaintKey("gpu", objects.NoSchedule)).Member()},
			outdated: []string{"worker"},
		},
		{
			name:  "and goes with the write that adds the stronger one",
			node:  objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			pools: []plan.PoolOnNode{pool().Managing(setting.TaintKey("gpu", objects.NoSchedule)).Evictor()},
			want: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", gpu, "1"),
			changes:  []string{"worker: added taint gpu:NoExecute", "worker: removed taint gpu:NoSchedule"},
			evicting: []string{"worker"},
		},
		{
			name:     "a weaker taint of another key goes at once",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "fpga", "1", objects.NoSchedule),
			pools:    []plan.PoolOnNode{pool().Managing(setting.TaintKey("fpga", objects.NoSchedule)).Member()},
			want:     objects.Node("a").LabelOf("worker", "zone", "1"),
			changes:  []string{"worker: removed taint fpga:NoSchedule"},
			pending:  []string{"worker"},
			outdated: []string{"worker"},
		},
		{
			name: "while the older pool waits, the younger pool's taint and its record stay",
			node: objects.Node("a").TaintOf("young", "gpu", "2", objects.NoExecute),
			pools: []plan.PoolOnNode{objects.Pool("old").CreatedAt(1).Taint("gpu", "1", objects.NoExecute).Member(),
				objects.Pool("young").CreatedAt(2).Taint("gpu", "2", objects.NoExecute).Evictor()},
			conflicts: []string{"young wants taint gpu:NoExecute of old"},
			pending:   []string{"old"},
			outdated:  []string{"old"},
		},
		{
			name: "a node that is allowed for one pool is not allowed for another",
			node: objects.Node("a"),
			pools: []plan.PoolOnNode{objects.Pool("x").Taint("gpu", "", objects.NoExecute).Member(),
				objects.Pool("y").Taint("fpga", "", objects.NoExecute).Evictor()},
			want: objects.Node("a").TaintAt("fpga", "", objects.NoExecute, objects.PatchTime).
				Owned("y", setting.TaintKey("fpga", "NoExecute"), ""),
			changes:  []string{"y: added taint fpga:NoExecute"},
			pending:  []string{"x"},
			outdated: []string{"x", "y"},
			evicting: []string{"y"},
		},
	} {
		row.run(t)
	}
}
