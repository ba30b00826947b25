// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// FuzzForgedRecord: whatever somebody writes into the record of a node, it does
// not crash the model, takes off nothing but what a pool that it names vouches
// for, and is forgotten with the node.
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
			"ours":  MakePool("ours").MatchLabels("f0", "1").Labels("l0", "1").Taint("t0", "1", corev1.TaintEffectNoSchedule).Obj(),
			"going": MakePool("going").MatchLabels("f0", "1").Labels("l1", "1").Deleted().Obj(),
		}
		node := MakeNode("n").Label("f0", "1").Label("theirs", "x").Label("l0", value).Label("l1", value).Annotation("theirs", "x").
			Taint("theirs", "x", corev1.TaintEffectNoSchedule).Taint("t0", value, corev1.TaintEffectNoSchedule).Record(text).Obj()
		fleet := newFleet()
		for _, pool := range pools {
			fleet.setPool(pool)
		}
		fleet.setNode(node)
		plan, end := fleet.begin(node)
		for s := range plan.remove {
			if !slices.ContainsFunc([]string{"ours", "going"}, func(pool string) bool { return vouches(pools[pool], s) }) {
				t.Errorf("%s is taken off, which no pool vouches for", s)
			}
		}
		after := carryOut(t, &plan, node)
		for _, of := range []func(*corev1.Node) map[string]string{
			func(n *corev1.Node) map[string]string { return n.Labels },
			func(n *corev1.Node) map[string]string { return n.Annotations },
		} {
			if of(after)["theirs"] != "x" {
				t.Errorf("what is theirs has gone: %v", of(after))
			}
		}
		if !slices.Contains(after.Spec.Taints, corev1.Taint{Key: "theirs", Value: "x", Effect: corev1.TaintEffectNoSchedule}) {
			t.Errorf("their taint has gone: %v", after.Spec.Taints)
		}
		stored := after.Annotations[tidekeeperv1.RecordAnnotation]
		if _, err := parseRecord(stored); err != nil || !utf8.ValidString(stored) {
			t.Errorf("what is stored instead of %q is not readable: %q", text, stored)
		}

		fleet.setNode(after)
		end()
		if plan, end := fleet.begin(after); !plan.empty() {
			t.Errorf("carried out, the plan is not done: %s", plan.patch(after, planTime))
		} else {
			end()
		}
		fleet.deleteNode(node.Name)
		empty := newFleet()
		for _, pool := range pools {
			empty.setPool(pool)
		}
		if diff := cmp.Diff(len(empty.traces), len(fleet.traces), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the node is gone and its record is not (-want +got):\n%s", diff)
		}
	})
}
