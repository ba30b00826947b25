// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// FuzzForgedRecord checks arbitrary values of the ownership annotation. They must not crash the
// model, remove a setting that the named pool does not manage, or stay in memory after the node is
// deleted.
func FuzzForgedRecord(f *testing.F) {
	for _, text := range []string{
		"", "null", "{", "[]", `{"ours":1}`, "\xff", `{"ours":{"labels":{"l0":"1"},"taints":{"t0:NoSchedule":"1"}}}`,
		`{"ours":{"labels":{"theirs":"x","kubernetes.io/hostname":"n"},"annotations":{"tidekeeper.dev/node-pools":"{"},"taints":{"theirs:NoSchedule":"x",":":"",":NoExecute":""}}}`,
		`{"going":{"labels":{"l1":"1","theirs":"x"}},"ghost":{"labels":{"theirs":"x"}},"":{"labels":{"":""}}}`,
	} {
		f.Add(text, "1")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		pools := map[string]*tidekeeperv1.NodePool{
			"ours":  objects.Pool("ours").MatchLabels("f0", "1").Labels("l0", "1").Taint("t0", "1", corev1.TaintEffectNoSchedule).Obj(),
			"going": objects.Pool("going").MatchLabels("f0", "1").Labels("l1", "1").Deleted().Obj(),
		}
		node := objects.Node("n").Label("f0", "1").Label("theirs", "x").Label("l0", value).Label("l1", value).Annotation("theirs", "x").
			Taint("theirs", "x", corev1.TaintEffectNoSchedule).Taint("t0", value, corev1.TaintEffectNoSchedule).OwnershipText(text).Obj()
		cluster := NewCluster()
		for _, pool := range pools {
			cluster.SetPool(pool)
		}
		cluster.SetNode(node)
		plan, end := cluster.BeginWrite(node)
		for s := range plan.Remove {
			if !slices.ContainsFunc([]string{"ours", "going"}, func(pool string) bool { return setting.Manages(pools[pool], s) }) {
				t.Errorf("%s is removed, which no pool manages", s)
			}
		}
		after := objects.ApplyPlan(t, &plan, node)
		for _, of := range []func(*corev1.Node) map[string]string{
			func(n *corev1.Node) map[string]string { return n.Labels },
			func(n *corev1.Node) map[string]string { return n.Annotations },
		} {
			if of(after)["theirs"] != "x" {
				t.Errorf("a setting of another client was removed: %v", of(after))
			}
		}
		if !slices.Contains(after.Spec.Taints, corev1.Taint{Key: "theirs", Value: "x", Effect: corev1.TaintEffectNoSchedule}) {
			t.Errorf("the taint of another client was removed: %v", after.Spec.Taints)
		}
		stored := after.Annotations[tidekeeperv1.OwnershipAnnotation]
		if _, err := ownership.Parse(stored); err != nil || !utf8.ValidString(stored) {
			t.Errorf("the record that replaces %q is not readable: %q", text, stored)
		}

		cluster.SetNode(after)
		end()
		if plan, end := cluster.BeginWrite(after); !plan.Empty() {
			t.Errorf("after the plan, there is more to write: %s", plan.Patch(after, objects.PatchTime))
		} else {
			end()
		}
		cluster.DeleteNode(node.Name)
		empty := NewCluster()
		for _, pool := range pools {
			empty.SetPool(pool)
		}
		if diff := cmp.Diff(len(empty.graph.owners), len(cluster.graph.owners), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("records after the node was deleted (-want +got):\n%s", diff)
		}
	})
}
