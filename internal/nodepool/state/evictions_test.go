// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestEvictions checks that Evictions includes nodes of other pools. It also checks that pods that
// tolerate the taint for longer than the maximum duration are counted only on waiting nodes.
func TestEvictions(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("a").Taint("out", "", objects.NoExecute).Obj())
	f.SetPool(objects.Pool("b").Taint("gone", "", objects.NoExecute).Obj())
	f.SetPool(objects.Pool("quiet").Labels("x", "1").Obj())
	f.SetNode(objects.Node("waits").Role("a").Obj())
	f.SetNode(objects.Node("empty").Role("a").Obj())
	f.SetNode(objects.Node("done").Role("a").TaintAt("out", "", objects.NoExecute, objects.PatchTime.Add(-time.Minute)).Obj())
	f.SetNode(objects.Node("long-done").Role("a").TaintAt("out", "", objects.NoExecute, objects.PatchTime.Add(-time.Hour)).Obj())
	f.SetNode(objects.Node("theirs").Role("b").TaintAt("gone", "", objects.NoExecute, objects.PatchTime.Add(-time.Minute)).Obj())
	f.SetNode(objects.Node("next").Role("b").Obj())
	f.SetNode(objects.Node("other").Role("quiet").TaintAt("not-ours", "", objects.NoExecute, objects.PatchTime).Obj())
	f.AllowEvictions("b", []string{"next"}, nil, objects.PatchTime)
	years := int64(10 * 365 * 24 * 3600)
	for _, node := range []string{"waits", "done", "long-done", "theirs", "next", "other"} {
		pod := objects.Pod("p-" + node).On(node).Obj()
		f.SetPod(pod)
		pod = objects.Pod("stays-" + node).On(node).Tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, TolerationSeconds: &years}).Obj()
		f.SetPod(pod)
	}
	got, members, total := f.Evictions("a", plan.MaxEvictionDuration, objects.PatchTime)
	want := []plan.NodeEviction{
		{Node: "done", Member: true, Since: objects.PatchTime.Add(-time.Minute), AffectedPods: 1},
		{Node: "empty", Member: true, Waiting: true},
		{Node: "next", Allowed: true},
		{Node: "theirs", Since: objects.PatchTime.Add(-time.Minute), AffectedPods: 1},
		{Node: "waits", Member: true, Waiting: true, AffectedPods: 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plan.NodeEviction{})); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	if members != 4 || total != 7 {
		t.Errorf("%d members of %d nodes; want 4 of 7", members, total)
	}
}

func TestTaintedSince(t *testing.T) {
	early, late := objects.PatchTime.Add(-time.Hour), objects.PatchTime
	ours := &pool{object: objects.Pool("ours").Taint("gpu", "1", objects.NoExecute).Taint("fpga", "", objects.NoExecute).Obj()}
	for _, tc := range []struct {
		name string
		node *objects.NodeBuilder
		want time.Time
	}{
		{"a node without taints", objects.Node("a"), time.Time{}},
		{"the time of the taint", objects.Node("a").TaintAt("gpu", "1", objects.NoExecute, early), early},
		{"the later of two", objects.Node("a").TaintAt("gpu", "1", objects.NoExecute, early).TaintAt("fpga", "", objects.NoExecute, late), late},
		{"whichever comes first in the list", objects.Node("a").TaintAt("fpga", "", objects.NoExecute, late).TaintAt("gpu", "1", objects.NoExecute, early), late},
		{"a taint without a time has none", objects.Node("a").Taint("gpu", "1", objects.NoExecute), time.Time{}},
		{"not that of another taint", objects.Node("a").TaintAt("other", "1", objects.NoExecute, late).TaintAt("gpu", "1", objects.NoExecute, early), early},
		{"not that of another effect", objects.Node("a").TaintAt("gpu", "1", objects.NoSchedule, late), time.Time{}},
		// If the taint of an older pool counted, the node would count as evicting pods forever,
		// because its pods need not tolerate this pool's value.
		{"not that of another value: it is another pool's", objects.Node("a").TaintAt("gpu", "2", objects.NoExecute, late), time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := &node{object: tc.node.Obj(), pools: []*pool{ours}}
			if got := plan.LatestTaint(n.evictingTaints()); !got.Equal(tc.want) {
				t.Errorf("tainted since %v; want %v", got, tc.want)
			}
		})
	}
}
