// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestFutureOfRestlessPools checks that the simulation terminates for two pools that repeatedly add
// a node to each other and remove it again, and that it reports that the node never settles.
func TestFutureOfRestlessPools(t *testing.T) {
	in := objects.Pool("in").MatchExpression("example.com/out", "DoesNotExist").Labels("example.com/out", "1").Obj()
	end := NewSimulator([]*tidekeeperv1.NodePool{in}).Run(objects.Node("n").Obj())
	if !end.neverSettles {
		t.Errorf("the node settles as %s", setting.Actual(end.Node))
	}
	still := objects.Pool("still").MatchLabels("a", "b").Labels("c", "d").Obj()
	if end := NewSimulator([]*tidekeeperv1.NodePool{still}).Run(objects.Node("n").Label("a", "b").Obj()); end.neverSettles || end.Node.Labels["c"] != "d" {
		t.Errorf("a node with one pool: %+v", end)
	}
}

// TestFutureFollowsMembership checks that one pool's settings can make a node a member of another
// pool.
func TestFutureFollowsMembership(t *testing.T) {
	pools := []*tidekeeperv1.NodePool{
		objects.Pool("one").MatchLabels("a", "1").Labels("b", "2").Obj(),
		objects.Pool("two").MatchLabels("b", "2").Taint("c", "3", corev1.TaintEffectNoExecute).Obj(),
	}
	end := NewSimulator(pools).Run(objects.Node("n").Label("a", "1").Obj())
	if diff := cmp.Diff([]string{"one", "two"}, end.pools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if len(end.Node.Spec.Taints) != 1 {
		t.Errorf("taints %v, want that of the second pool", end.Node.Spec.Taints)
	}
}
