// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forgery writes corrupt and forged ownership records to nodes, as a user with the right to
// edit nodes can. An ownership record is the node annotation in which the manager records which
// pool has set which labels, annotations and taints. The manager must neither crash nor remove
// settings of other clients.
package forgery

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &cluster, "--nodes=0")) }

// poolLabel is the key of the pool's node selector.
const poolLabel = "lane.example.com/name"

// corrupt lists ownership records that cannot be parsed. forged lists ownership records with false
// content.
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

// TestForgedRecords checks that, with a corrupt or forged ownership record on a node, the manager
// does not crash, does not remove settings that the pool has not made, and keeps the pool in sync.
// Deleting the pool must remove its settings.
func TestForgedRecords(t *testing.T) {
	manager := cluster.StartManager(t)
	// This pool has no settings on the test's nodes, although a forged record may name it.
	other := framework.Pool("other")
	other.Spec.Labels = map[string]tidekeeperv1.LabelValue{"other": "x"}
	cluster.Apply(t, other)
	theirs := map[string]string{poolLabel: "forged", "theirs": "x", "kubernetes.io/os": "linux"}
	records := slices.Concat(corrupt, forged)
	nodes := make([]*corev1.Node, len(records))
	for i := range records {
		nodes[i] = framework.Node(fmt.Sprintf("forged-%d", i))
		nodes[i].Labels, nodes[i].Annotations = maps.Clone(theirs), map[string]string{"theirs": "x"}
		nodes[i].Spec.Taints = []corev1.Taint{{Key: "theirs", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		cluster.Apply(t, nodes[i])
	}
	const key = "example.com/forged"
	p := framework.Pool("forged")
	p.Spec = tidekeeperv1.NodePoolSpec{
		Selector:    &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{poolLabel: "forged"}},
		Labels:      map[string]tidekeeperv1.LabelValue{key: "10"},
		Annotations: map[string]tidekeeperv1.AnnotationValue{key: "high water"},
		Taints:      []tidekeeperv1.Taint{{Key: key, Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
		Handler:     "runc",
	}
	cluster.Apply(t, p)
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
	// The manager handles this change after it has seen the forged records.
	cluster.Change(t, p, func() { p.Spec.Labels[key+"-2"] = "x" })
	eventually(t, p, "is healthy", func() error { return framework.ReadyIs(p.Status.Conditions, p.Generation, "Healthy") })
	cluster.Change(t, p, func() { delete(p.Spec.Labels, key+"-2") })
	for _, node := range nodes {
		looks(node, true)
	}
	manager.AssertSound(t)

	// The pool's settings are removed, except settings that the forged record does not contain.
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

// look holds a node's labels, annotations and taints.
type look struct {
	Labels, Annotations map[string]string
	Taints              []string
}

// lookOf returns a node's labels, annotations and taints, without the ownership annotation and most
// labels and annotations that the kubelet and the control plane set.
func lookOf(node *corev1.Node) look {
	l := look{Labels: maps.Clone(node.Labels), Annotations: maps.Clone(node.Annotations)}
	maps.DeleteFunc(l.Labels, func(key, _ string) bool { return strings.HasPrefix(key, "beta.kubernetes.io/") })
	maps.DeleteFunc(l.Annotations, func(key, _ string) bool {
		return key == tidekeeperv1.OwnershipAnnotation || strings.Contains(key, "kubernetes.io/")
	})
	for _, t := range node.Spec.Taints {
		l.Taints = append(l.Taints, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
	}
	return l
}

// eventually refreshes an object until the given check returns nil.
func eventually(t testing.TB, o client.Object, what string, check func() error) {
	t.Helper()
	framework.Eventually(t, o.GetName()+" "+what, func() error {
		if err := cluster.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check()
	})
}
