// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package badspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// corrupt are records that cannot be parsed, forged are records with false content: a
// user with the right to edit nodes can write both.
var (
	corrupt = []string{
		"worker was here", "{", "[]", " ", `{"forged":1}`, `{"forged":{"labels":"all"}}`, strings.Repeat(`{"a":`, 20_000),
	}
	forged = []string{
		"null",
		"{}",
		`{"ghost":{"labels":{"theirs":"` + strings.Repeat("x", 200_000) + `"}}}`,
		`{"forged":{"labels":{"theirs":"x","kubernetes.io/os":"linux","lane.example.com/name":"forged"},"annotations":{"theirs":"x"},"taints":{"theirs:NoSchedule":"x"}}}`,
		`{"ghost":{"labels":{"theirs":"x","example.com/forged":"10"},"annotations":{"theirs":"x"},"taints":{"theirs:NoSchedule":"x","example.com/forged:NoSchedule":"yes"}}}`,
		`{"":{"labels":{"":"","theirs":"x"},"taints":{"":"",":":"","theirs":"x"}},"../..":{"labels":{"theirs":"x"}}}`,
		`{"forged":{"annotations":{"tidekeeper.dev/node-pools":"x"},"taints":{"node.kubernetes.io/unreachable:NoExecute":""}},"other":{"labels":{"theirs":"x"}}}`,
	}
)

// TestForgedRecords: with a corrupt or forged record, the manager does not crash and
// does not remove anything that is not the pool's, and the pool stays in sync. When
// the pool is deleted, its settings are removed.
func TestForgedRecords(t *testing.T) {
	manager := cluster.StartManager(t)
	// A pool that has no settings on these nodes, although a record may name it.
	other := framework.Pool("other")
	create(t, other, map[string]any{"labels": map[string]any{"other": "x"}})
	theirs := map[string]string{poolLabel: "forged", "theirs": "x", "kubernetes.io/os": "linux"}
	records := slices.Concat(corrupt, forged)
	nodes := make([]*corev1.Node, len(records))
	for i := range records {
		nodes[i] = framework.Node(fmt.Sprintf("forged-%d", i))
		nodes[i].Labels, nodes[i].Annotations = maps.Clone(theirs), map[string]string{"theirs": "x"}
		nodes[i].Spec.Taints = []corev1.Taint{{Key: "theirs", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		cluster.Apply(t, nodes[i])
	}
	p := framework.Pool("forged")
	create(t, p, pools[0])
	const key = "example.com/forged"
	looks := func(node *corev1.Node, with bool) {
		t.Helper()
		want := look{Labels: maps.Clone(theirs), Annotations: map[string]string{"theirs": "x"}, Taints: []string{"theirs=x:NoSchedule"}}
		if with {
			want.Labels[key], want.Annotations[key] = "10", "high water"
			want.Taints = append(want.Taints, key+"=yes:NoSchedule")
		}
		eventually(t, node, "has its shape", func() error {
			if diff := cmp.Diff(want, lookOf(node), cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}
	for _, node := range nodes {
		looks(node, true)
	}

	for i, node := range nodes {
		cluster.Change(t, node, func() {
			node.Annotations[tidekeeperv1.OwnershipAnnotation] = records[i]
		})
	}
	// A change that the manager must apply: when it has done so, it has seen the records.
	cluster.Change(t, p, func() { p.Spec.Labels[key+"-2"] = "x" })
	eventually(t, p, "is healthy", func() error { return framework.ReadyIs(p.Status.Conditions, p.Generation, "Healthy") })
	cluster.Change(t, p, func() { delete(p.Spec.Labels, key+"-2") })
	for _, node := range nodes {
		looks(node, true)
	}
	manager.AssertSound(t)

	// The pool's settings are removed, unless they were removed from the record.
	cluster.Delete(t, p)
	for i, node := range nodes {
		if i < len(corrupt) {
			looks(node, false)
			continue
		}
		eventually(t, node, "is released", func() error {
			if stored := node.Annotations[tidekeeperv1.OwnershipAnnotation]; strings.Contains(stored, `"forged":`) {
				return fmt.Errorf("its record is %s", stored)
			}
			return nil
		})
		for key, value := range theirs {
			if node.Labels[key] != value {
				t.Errorf("record %.80s: their label %s is %q", records[i], key, node.Labels[key])
			}
		}
		if node.Annotations["theirs"] != "x" || !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "theirs" }) {
			t.Errorf("record %.80s: settings of other clients were removed: %v, %v", records[i], node.Annotations, node.Spec.Taints)
		}
	}
	manager.AssertSound(t)
}
