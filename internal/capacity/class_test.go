// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// TestClasses checks that pods of the same controller share a class if they have equal requests and
// constraints.
func TestClasses(t *testing.T) {
	web := func(change func(*corev1.Pod)) *corev1.Pod {
		p := aPod("web", "ReplicaSet", "web-7d9", "a", "cpu", "1")
		change(&p)
		return &p
	}
	daemon, other := aPod("agent-1", "DaemonSet", "agent", "a", "cpu", "1"), aPod("agent-2", "DaemonSet", "agent", "b", "cpu", "1")
	other.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "b"}
	same := func(*corev1.Pod) {}
	for _, tc := range []struct {
		name string
		a, b *corev1.Pod
		want bool
	}{
		{"another name", web(same), web(func(p *corev1.Pod) { p.Name = "web-2" }), true},
		{"another request", web(same), web(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("cpu", "2") }), false},
		{"another constraint", web(same), web(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), false},
		{"another controller", web(same), web(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }), false},
		{"a controller of the same UID in another namespace", web(same), web(func(p *corev1.Pod) { p.Namespace = "hostile" }), false},
		{"a controller of the same UID and another kind", web(same), web(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }), false},
		{"no controller", web(func(p *corev1.Pod) { p.OwnerReferences = nil }), web(func(p *corev1.Pod) { p.OwnerReferences = nil }), false},
		{"pods of a DaemonSet, each bound to its node", &daemon, &other, true},
	} {
		c := newClasses(axesOf("cpu", "pods"), vector{8000, 10}, nil)
		if got := c.of(tc.a, nil) == c.of(tc.b, nil); got != tc.want {
			t.Errorf("%s: the same class: %t, want %t", tc.name, got, tc.want)
		}
	}
}

// TestSizeOfAClass checks that a class's size is the largest of its shares of the cluster's
// resources.
func TestSizeOfAClass(t *testing.T) {
	c := newClasses(axesOf("cpu", "memory", "pods"), vector{8, 100, 0}, nil)
	example := &corev1.Pod{}
	got := c.like(example, []resources.Amount{{Resource: "cpu", Value: 2}, {Resource: "memory", Value: 50}, {Resource: "pods", Value: 1}})
	if got.size != 0.5 {
		t.Errorf("the size is %v, want half of the memory", got.size)
	}
	if again := c.like(example, nil); again != got {
		t.Error("the example has another class the second time")
	}
}
