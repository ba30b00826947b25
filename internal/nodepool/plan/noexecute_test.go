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
	pool := func() *objects.PoolMaker {
		return objects.Pool("worker").Labels("zone", "1").Taint("gpu", "1", objects.NoExecute)
	}
	gpu := setting.TaintKey("gpu", "NoExecute")

	for _, row := range []planRow{
		{
			name:     "until the node is admitted, and puts the rest there at once",
			node:     objects.Node("a"),
			claims:   []plan.PoolOnNode{pool().Taint("gpu", "1", objects.NoSchedule).Member()},
			want:     objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			changes:  []string{"worker: added label zone", "worker: added taint gpu:NoSchedule"},
			heldBack: []string{"worker"},
		},
		{
			name:     "with no write if nothing else is to be done",
			node:     objects.Node("a").LabelOf("worker", "zone", "1"),
			claims:   []plan.PoolOnNode{pool().Member()},
			heldBack: []string{"worker"},
			unshaped: []string{"worker"},
		},
		{
			name:   "and puts it there with the time once the node is admitted",
			node:   objects.Node("a").LabelOf("worker", "zone", "1"),
			claims: []plan.PoolOnNode{pool().Evictor()},
			want: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", gpu, "1"),
			changes: []string{"worker: added taint gpu:NoExecute"},
			evicts:  []string{"worker"},
		},
		{
			name:     "also when its value changes: that may evict others",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").TaintOf("worker", "gpu", "0", objects.NoExecute),
			claims:   []plan.PoolOnNode{pool().Member()},
			heldBack: []string{"worker"},
			unshaped: []string{"worker"},
		},
		{
			name: "and stamps the change with its own time",
			node: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "0", objects.NoExecute, objects.PatchTime.Add(-time.Hour)).
				Owned("worker", gpu, "0"),
			claims: []plan.PoolOnNode{pool().Evictor()},
			want: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", gpu, "1"),
			changes: []string{"worker: updated taint gpu:NoExecute"},
			evicts:  []string{"worker"},
		},
		{
			name:     "also when a person took it off by hand",
			node:     objects.Node("a").LabelOf("worker", "zone", "1").Owned("worker", gpu, "1"),
			claims:   []plan.PoolOnNode{pool().Member()},
			heldBack: []string{"worker"},
			unshaped: []string{"worker"},
		},
		{
			name: "once it is there it stays, admitted or not",
			node: objects.Node("a").LabelOf("worker", "zone", "1").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime.Add(-time.Hour)).
				Owned("worker", gpu, "1"),
			claims: []plan.PoolOnNode{pool().Member()},
		},
		{
			name:     "is not held back before the status vouches for it: it is not its turn to wait yet",
			node:     objects.Node("a").LabelOf("worker", "zone", "1"),
			claims:   []plan.PoolOnNode{pool().ManagingNothing().Managing(setting.LabelKey("zone")).Member()},
			unshaped: []string{"worker"},
		},
		{
			name: "while the older waits, what the younger has put there stays, with its record",
			node: objects.Node("a").TaintOf("young", "gpu", "2", objects.NoExecute),
			claims: []plan.PoolOnNode{objects.Pool("old").CreatedAt(1).Taint("gpu", "1", objects.NoExecute).Member(),
				objects.Pool("young").CreatedAt(2).Taint("gpu", "2", objects.NoExecute).Evictor()},
			conflicts: []string{"young wants taint gpu:NoExecute of old"},
			heldBack:  []string{"old"},
			unshaped:  []string{"old"},
		},
		{
			name: "one pool's admission is not another's",
			node: objects.Node("a"),
			claims: []plan.PoolOnNode{objects.Pool("x").Taint("gpu", "", objects.NoExecute).Member(),
				objects.Pool("y").Taint("fpga", "", objects.NoExecute).Evictor()},
			want: objects.Node("a").TaintAt("fpga", "", objects.NoExecute, objects.PatchTime).
				Owned("y", setting.TaintKey("fpga", "NoExecute"), ""),
			changes:  []string{"y: added taint fpga:NoExecute"},
			heldBack: []string{"x"},
			unshaped: []string{"x", "y"},
			evicts:   []string{"y"},
		},
	} {
		row.run(t)
	}
}
