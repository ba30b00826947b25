// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestPlanWithoutAPool checks that a frozen pool's settings and ownership entries are left
// unchanged, while the settings of other pools are applied.
func TestPlanWithoutAPool(t *testing.T) {
	node := objects.Node("n").LabelOf("frozen", "old", "1").LabelOf("going", "theirs", "1").Obj()
	pools := []plan.PoolOnNode{
		{Pool: objects.Pool("frozen").Labels("new", "1").Managing(setting.LabelKey("old")).Obj(), Member: true},
		{Pool: objects.Pool("going").Managing(setting.LabelKey("theirs")).Deleted().Obj()},
		{Pool: objects.Pool("coming").Labels("fine", "1").Obj(), Member: true},
	}
	nodePlan := plan.ForNodeExcept(node, pools, sets.New("frozen"))
	want := []string{"pool coming: added label fine", "pool going: removed label theirs"}
	var got []string
	for _, c := range nodePlan.Changes {
		got = append(got, c.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ownership.Settings{setting.LabelKey("old"): "1"}, nodePlan.Ownership["frozen"]); diff != "" {
		t.Errorf("recorded of the frozen pool (-want +got):\n%s", diff)
	}
}
