// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestPoolOf(t *testing.T) {
	pool := func(name string, created int, selector *tidekeeperv1.NodeSelector) tidekeeperv1.NodePool {
		return tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(created)}, Spec: tidekeeperv1.NodePoolSpec{Selector: selector}}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/worker": "", "zone": "a"}}}
	zoneA := &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"zone": "a"}}
	notB := &tidekeeperv1.NodeSelector{MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{
		{Key: "zone", Operator: metav1.LabelSelectorOpNotIn, Values: []tidekeeperv1.LabelValue{"b"}},
	}}
	for _, tt := range []struct {
		name  string
		pools []tidekeeperv1.NodePool
		want  string
	}{
		{name: "no pools"},
		{name: "of another role", pools: []tidekeeperv1.NodePool{pool("infra", 0, nil)}},
		{name: "by role", pools: []tidekeeperv1.NodePool{pool("infra", 0, nil), pool("worker", 1, nil)}, want: "worker"},
		{name: "by selector", pools: []tidekeeperv1.NodePool{pool("a", 0, zoneA)}, want: "a"},
		{name: "by expression", pools: []tidekeeperv1.NodePool{pool("not-b", 0, notB)}, want: "not-b"},
		{name: "an empty selector selects none", pools: []tidekeeperv1.NodePool{pool("a", 0, &tidekeeperv1.NodeSelector{})}},
		{name: "the oldest", pools: []tidekeeperv1.NodePool{pool("a", 2, zoneA), pool("worker", 1, nil)}, want: "worker"},
		{name: "of two equally old ones the first by name", pools: []tidekeeperv1.NodePool{pool("worker", 1, nil), pool("a", 1, zoneA)}, want: "a"},
	} {
		p := &pools{}
		for i := range tt.pools {
			p.set(&tt.pools[i])
		}
		if got := p.poolOf(node); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestPoolsFollowChanges checks that poolOf reflects each change of a node pool.
func TestPoolsFollowChanges(t *testing.T) {
	pool := func(name string, created int, zone string) *tidekeeperv1.NodePool {
		return &tidekeeperv1.NodePool{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(created)},
			Spec:       tidekeeperv1.NodePoolSpec{Selector: &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"zone": tidekeeperv1.LabelValue(zone)}}},
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}}}
	p := &pools{}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"none", func() {}, ""},
		{"one", func() { p.set(pool("young", 2, "a")) }, "young"},
		{"an older one", func() { p.set(pool("old", 1, "a")) }, "old"},
		{"the older one selects other nodes", func() { p.set(pool("old", 1, "b")) }, "young"},
		{"and these again", func() { p.set(pool("old", 1, "a")) }, "old"},
		{"the older one is gone", func() { p.remove("old") }, "young"},
		{"another of its name is younger", func() { p.set(pool("old", 3, "a")) }, "young"},
	} {
		step.change()
		if got := p.poolOf(node); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}
