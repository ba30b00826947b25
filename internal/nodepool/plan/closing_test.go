// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPlanEmptiesBeforeNoExecute checks the steps in adding a NoExecute taint with the eviction
// WithinBudgets, and the remaining settings if the pool is edited or another client changes the
// node in between.
func TestPlanEmptiesBeforeNoExecute(t *testing.T) {
	pool := func() *objects.PoolBuilder { return objects.Pool("worker").TaintWithinBudgets("gpu", "1") }
	noExecute, noSchedule := setting.TaintKey("gpu", objects.NoExecute), setting.TaintKey("gpu", objects.NoSchedule)
	earlier := objects.PatchTime.Add(-time.Hour)
	closed := func() *objects.NodeBuilder {
		return objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule).Closed("worker", "gpu", earlier)
	}
	tainted := func() *objects.NodeBuilder {
		return objects.Node("a").TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).Owned("worker", noExecute, "1")
	}
	immediate := func() *objects.PoolBuilder {
		return objects.Pool("worker").Taint("gpu", "1", objects.NoExecute).Managing(noSchedule)
	}
	turnAndEmpty := pool().Evictor()
	turnAndEmpty.Emptied = true

	for _, row := range []planRow{
		{
			name: "waits for its turn", node: objects.Node("a"), pools: []plan.PoolOnNode{pool().Member()},
			pending: []string{"worker"}, outdated: []string{"worker"},
		},
		{
			name: "is closed at its turn, with the time", node: objects.Node("a"), pools: []plan.PoolOnNode{pool().Evictor()},
			want:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule).Closed("worker", "gpu", objects.PatchTime),
			changes: []string{"worker: added taint gpu:NoSchedule"}, evicting: []string{"worker"},
		},
		{
			name: "is not closed again, and keeps the time", node: closed(), pools: []plan.PoolOnNode{pool().Evictor()},
			outdated: []string{"worker"},
		},
		{
			name: "stays closed without a turn, as after a restart of the manager", node: closed(), pools: []plan.PoolOnNode{pool().Member()},
			outdated: []string{"worker"},
		},
		{
			name: "gets the taint when it is empty, in exchange for the closing taint", node: closed(), pools: []plan.PoolOnNode{pool().Emptied()},
			want: tainted(), changes: []string{"worker: added taint gpu:NoExecute", "worker: removed taint gpu:NoSchedule"}, evicting: []string{"worker"},
		},
		{
			name: "gets the taint at once if it is empty at its turn", node: objects.Node("a"), pools: []plan.PoolOnNode{turnAndEmpty},
			want: tainted(), changes: []string{"worker: added taint gpu:NoExecute"}, evicting: []string{"worker"},
		},
		{
			name: "is not tainted for being empty without a turn", node: objects.Node("a"), pools: []plan.PoolOnNode{pool().Emptied()},
			pending: []string{"worker"}, outdated: []string{"worker"},
		},
		{
			name: "has the taint: nothing to do, and the time goes", node: tainted().Closed("worker", "gpu", earlier), pools: []plan.PoolOnNode{pool().Member()},
			want: tainted(),
		},
		{
			name: "is closed again when another client opens it", node: objects.Node("a").Owned("worker", noSchedule, "1").Closed("worker", "gpu", earlier),
			pools: []plan.PoolOnNode{pool().Member()}, want: closed(),
			changes: []string{"worker: restored taint gpu:NoSchedule"},
		},
		{
			name: "waits again when another client removes the taint", node: objects.Node("a").Owned("worker", noExecute, "1"), pools: []plan.PoolOnNode{pool().Member()},
			pending: []string{"worker"}, outdated: []string{"worker"},
		},
		{
			name: "the pool's own NoSchedule closes it, and stays", node: objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule).Closed("worker", "gpu", earlier),
			pools: []plan.PoolOnNode{pool().Taint("gpu", "1", objects.NoSchedule).Emptied()},
			want: objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule).TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", noExecute, "1"),
			changes: []string{"worker: added taint gpu:NoExecute"}, evicting: []string{"worker"},
		},
		{
			name:  "another client's NoSchedule closes it, and stays",
			node:  objects.Node("a").Taint("gpu", "theirs", objects.NoSchedule),
			pools: []plan.PoolOnNode{pool().Evictor()},
			want:  objects.Node("a").Taint("gpu", "theirs", objects.NoSchedule).Closed("worker", "gpu", objects.PatchTime), outdated: []string{"worker"},
			evicting: []string{"worker"},
		},
		{
			name:  "and is not the pool's afterwards",
			node:  objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Closed("worker", "gpu", earlier),
			pools: []plan.PoolOnNode{pool().Emptied()},
			want: objects.Node("a").Taint("gpu", "1", objects.NoSchedule).TaintAt("gpu", "1", objects.NoExecute, objects.PatchTime).
				Owned("worker", noExecute, "1"),
			changes: []string{"worker: added taint gpu:NoExecute"}, evicting: []string{"worker"},
		},
		{
			name:  "another value while it is emptied",
			node:  objects.Node("a").TaintOf("worker", "gpu", "0", objects.NoSchedule).Closed("worker", "gpu", earlier),
			pools: []plan.PoolOnNode{pool().Member()}, want: closed(),
			changes: []string{"worker: updated taint gpu:NoSchedule"},
		},
		{
			name: "an Immediate taint forgets that the node was closed, and waits closed", node: closed(), pools: []plan.PoolOnNode{immediate().Member()},
			want:    objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule),
			pending: []string{"worker"}, outdated: []string{"worker"},
		},
		{
			name: "and is added at its turn", node: closed(), pools: []plan.PoolOnNode{immediate().Evictor()},
			want: tainted(), changes: []string{"worker: added taint gpu:NoExecute", "worker: removed taint gpu:NoSchedule"}, evicting: []string{"worker"},
		},
		{
			name: "the pool no longer asks for it", node: closed(), pools: []plan.PoolOnNode{objects.Pool("worker").Managing(noExecute, noSchedule).Member()},
			want: objects.Node("a"), changes: []string{"worker: removed taint gpu:NoSchedule"},
		},
		{
			name: "the pool is deleted", node: closed(), pools: []plan.PoolOnNode{pool().Deleted().NoMember()},
			want: objects.Node("a"), changes: []string{"worker: removed taint gpu:NoSchedule"},
		},
		{
			name: "the pool is deleted, and had only closed it with another client's taint", node: objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Closed("worker", "gpu", earlier),
			pools: []plan.PoolOnNode{pool().Deleted().NoMember()},
			want:  objects.Node("a").Taint("gpu", "1", objects.NoSchedule),
		},
		{
			name: "is not closed before both keys are managed", node: objects.Node("a"),
			pools: []plan.PoolOnNode{pool().ManagingNothing().Managing(noExecute).Evictor()}, outdated: []string{"worker"},
		},
		{
			name: "stays closed while they are not", node: closed(), pools: []plan.PoolOnNode{pool().ManagingNothing().Managing(noSchedule).Emptied()},
			outdated: []string{"worker"},
		},
		{
			name: "an older pool with the taint leaves nothing to empty", node: closed(),
			pools: []plan.PoolOnNode{pool().CreatedAt(2).Evictor(), objects.Pool("old").CreatedAt(1).Taint("gpu", "0", objects.NoExecute).Member()},
			want:  objects.Node("a"), changes: []string{"worker: removed taint gpu:NoSchedule"},
			conflicts: []string{"worker wants taint gpu:NoExecute of old"}, pending: []string{"old"}, outdated: []string{"old", "worker"},
		},
	} {
		row.run(t)
	}
}

// TestPlanSaysWhatIsBeingEmptied checks that a node counts as being emptied only once it is closed
// on the API server, and only for taints that it does not have yet.
func TestPlanSaysWhatIsBeingEmptied(t *testing.T) {
	since := objects.PatchTime.Add(-time.Hour)
	pool := objects.Pool("worker").TaintWithinBudgets("gpu", "1").TaintWithinBudgets("fpga", "")
	frozen := pool.Member()
	for _, tc := range []struct {
		name string
		node *objects.NodeBuilder
		on   plan.PoolOnNode
		want []string
	}{
		{"not before it is closed", objects.Node("a"), pool.Evictor(), nil},
		{"not while it is open again", objects.Node("a").Closed("worker", "gpu", since), pool.Member(), nil},
		{"once it is closed", objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Closed("worker", "gpu", since), pool.Member(), []string{"gpu=1:NoExecute"}},
		{"for both", objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Taint("fpga", "", objects.NoSchedule).Closed("worker", "gpu", since).Closed("worker", "fpga", since), pool.Member(),
			[]string{"fpga:NoExecute", "gpu=1:NoExecute"}},
		{"not for the taint that it has", objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Taint("gpu", "1", objects.NoExecute).Closed("worker", "gpu", since), pool.Member(), nil},
		{"not for another pool's time", objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Closed("other", "gpu", since), pool.Member(), nil},
		{"not for a pool that has left it", objects.Node("a").Taint("gpu", "1", objects.NoSchedule).Closed("worker", "gpu", since), pool.NoMember(), nil},
		{"not for an unreadable time", objects.Node("a").Taint("gpu", "1", objects.NoSchedule).OwnershipText(`{"worker":{"closed":{"gpu":"yesterday"}}}`), frozen, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodePlan := plan.ForNode(tc.node.Obj(), []plan.PoolOnNode{tc.on})
			var got []string
			for _, e := range nodePlan.Emptying {
				if !e.Since.Equal(since) || e.Pool != "worker" {
					t.Errorf("%+v is not since %s", e, since)
				}
				got = append(got, e.Taint.ToString())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFrozenPoolStaysClosed checks that a plan that leaves a pool's settings as they are also keeps
// the time at which the pool closed the node.
func TestFrozenPoolStaysClosed(t *testing.T) {
	node := objects.Node("a").TaintOf("worker", "gpu", "1", objects.NoSchedule).Closed("worker", "gpu", objects.Epoch).Obj()
	for name, on := range map[string]plan.PoolOnNode{
		"being emptied":   objects.Pool("worker").TaintWithinBudgets("gpu", "1").Emptied(),
		"being cleaned":   objects.Pool("worker").Managing(setting.TaintKey("gpu", objects.NoSchedule)).NoMember(),
		"asked no longer": objects.Pool("worker").Managing(setting.TaintKey("gpu", objects.NoSchedule)).Member(),
	} {
		other := objects.Pool("other").Labels("zone", "1").Member()
		nodePlan := plan.ForNodeExcept(node, []plan.PoolOnNode{on, other}, sets.New("worker"))
		after := objects.ApplyPlan(t, &nodePlan, node)
		if len(after.Spec.Taints) != 1 || after.Spec.Taints[0].Effect != corev1.TaintEffectNoSchedule || nodePlan.Closed["worker"]["gpu"] != objects.Epoch {
			t.Errorf("%s: taints %v, closed %v", name, after.Spec.Taints, nodePlan.Closed)
		}
	}
}
