// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestNodePool_Room checks that the status and the metrics show the resources that new pods can
// use, the unusable resources with the reason, and the largest pods that can start now.
func TestNodePool_Room(t *testing.T) {
	manager := cluster.StartManager(t, "--status-interval=100ms")
	addMembers(t, "room", 3, "--allocatable", "cpu=4,memory=8Gi,ephemeral-storage=0,pods=10")
	addMembers(t, "roomy", 1, "--allocatable", "cpu=2,memory=16Gi,ephemeral-storage=0,pods=10")
	relabel(t, "roomy-1", map[string]string{role("room"): ""})
	p := pool("room")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/room", Effect: corev1.TaintEffectNoSchedule}}
	cluster.Apply(t, p)
	healthyWith(t, "room", 4)

	sees := func(what string, nodes int32, usable, free string, lost []string, fits []string) {
		t.Helper()
		eventuallyPool(t, "room", what, func(p *tidekeeperv1.NodePool) error {
			s := p.Status
			var losses, largest []string
			for _, l := range s.Lost {
				losses = append(losses, fmt.Sprintf("%s %d %s", l.Cause, l.Nodes, cpuAndMemory(l.Resources)))
			}
			for _, fit := range s.LargestFits {
				largest = append(largest, fit.Node+" "+cpuAndMemory(fit.Resources))
			}
			return errors.Join(diff(nodes, s.UsableNodes), diff(usable, cpuAndMemory(s.Usable)), diff(free, cpuAndMemory(s.Free)), diff(lost, losses), diff(fits, largest))
		})
	}
	sees("is all usable", 4, "14 40Gi", "14 40Gi", nil, []string{"room-1 4 8Gi", "roomy-1 2 16Gi"})

	// A pod takes most of one node, so that the largest fits are on other nodes.
	requests := corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("1Gi")}
	spec := corev1.PodSpec{
		NodeName:    "room-1",
		Containers:  []corev1.Container{{Name: "a", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: requests}}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	cluster.Apply(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "room", Namespace: metav1.NamespaceDefault}, Spec: spec})
	sees("sees a pod", 4, "14 40Gi", "11 39Gi", nil, []string{"room-2 4 8Gi", "roomy-1 2 16Gi"})

	// The other nodes become unusable, each for a different reason.
	cordoned := framework.Node("room-2")
	cluster.Change(t, cordoned, func() { cordoned.Spec.Unschedulable = true })
	tainted := framework.Node("roomy-1")
	cluster.Change(t, tainted, func() {
		tainted.Spec.Taints = append(tainted.Spec.Taints, corev1.Taint{Key: "example.com/other", Effect: corev1.TaintEffectNoSchedule})
	})
	cluster.Sandbox(t, "nodes", "not-ready", "room-3")
	sees("sees what is lost", 1, "4 8Gi", "1 7Gi",
		[]string{"NotReady 1 4 8Gi", "Cordoned 1 4 8Gi", "OtherTaint 1 2 16Gi"}, []string{"room-1 1 7Gi"})
	framework.Eventually(t, "the metrics say the same", func() error {
		m := manager.ReadMetrics(t)
		return errors.Join(
			gauge(m, 1, "tidekeeper_nodepool_nodes", map[string]string{"pool": "room", "state": "usable"}),
			gauge(m, 1, "tidekeeper_nodepool_resource", map[string]string{"pool": "room", "kind": "free", "resource": "cpu"}),
			gauge(m, 4, "tidekeeper_nodepool_resource", map[string]string{"pool": "room", "kind": "usable", "resource": "cpu"}),
			gauge(m, 2, "tidekeeper_nodepool_lost", map[string]string{"pool": "room", "cause": "OtherTaint", "resource": "cpu"}),
			gauge(m, 1, "tidekeeper_nodepool_largest_fit", map[string]string{"pool": "room", "resource": "cpu"}))
	})

	// The fields requested and allocatable still count all nodes.
	eventuallyPool(t, "room", "has its level", func(p *tidekeeperv1.NodePool) error {
		return errors.Join(diff("14 40Gi", cpuAndMemory(p.Status.Allocatable)), diff("3 1Gi", cpuAndMemory(p.Status.Requested)))
	})

	cluster.Change(t, cordoned, func() { cordoned.Spec.Unschedulable = false })
	cluster.Sandbox(t, "nodes", "ready", "room-3")
	sees("is usable again", 3, "12 24Gi", "9 23Gi", []string{"OtherTaint 1 2 16Gi"}, []string{"room-2 4 8Gi"})

	// A node with the maximum number of pods takes no more pods, regardless of its free resources.
	full := framework.Node("room-1")
	cluster.ChangeStatus(t, full, func() { full.Status.Allocatable["pods"] = resource.MustParse("1") })
	sees("sees a node at its limit of pods", 2, "11 17Gi", "8 16Gi",
		[]string{"OtherTaint 1 2 16Gi", "PodLimitReached 1 1 7Gi"}, []string{"room-2 4 8Gi"})
}

// gauge returns nil if the series with the given labels has the value `want`.
func gauge(m framework.Metrics, want float64, name string, labels map[string]string) error {
	value, exists := m.Value(name, labels)
	if !exists || value != want {
		return fmt.Errorf("%s%v is %v (exists: %v), want %v", name, labels, value, exists, want)
	}
	return nil
}

func cpuAndMemory(list corev1.ResourceList) string {
	return list.Cpu().String() + " " + list.Memory().String()
}

// TestNodePool_Headroom checks that the condition Headroom reports whether the pods of a lost node
// or zone would fit on the remaining nodes, provided that the pool's spec requests this check.
func TestNodePool_Headroom(t *testing.T) {
	manager := cluster.StartManager(t)
	addMembers(t, "headroom", 2, "--allocatable", "cpu=4,memory=8Gi,pods=10")
	cluster.AddNodes(t, "elsewhere", 1) // A free node outside the pool. The pods cannot use it because they select the pool's nodes.
	p := pool("headroom")
	p.Spec.Headroom = &tidekeeperv1.Headroom{Nodes: 1}
	cluster.Apply(t, p)
	headroom := func(what string, want metav1.ConditionStatus, reason, message string) {
		t.Helper()
		eventuallyPool(t, "headroom", what, func(p *tidekeeperv1.NodePool) error {
			c := meta.FindStatusCondition(p.Status.Conditions, "Headroom")
			if c == nil {
				return fmt.Errorf("it has no condition Headroom: %v", p.Status.Conditions)
			}
			if c.Status != want || c.Reason != reason || !strings.Contains(c.Message, message) {
				return fmt.Errorf("it is %s, %s: %s", c.Status, c.Reason, c.Message)
			}
			return nil
		})
	}
	headroom("has headroom", metav1.ConditionTrue, "EnoughRoom", "any one node")

	requests := corev1.ResourceList{"cpu": resource.MustParse("2")}
	spec := corev1.PodSpec{
		NodeSelector: map[string]string{role("headroom"): ""},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:   []corev1.Container{{Name: "a", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: requests}}},
	}
	d := deployment("headroom", 2, spec)
	cluster.Apply(t, d)
	eventuallyPool(t, "headroom", "has its pods", func(p *tidekeeperv1.NodePool) error {
		return diff("4", p.Status.Requested.Cpu().String())
	})
	headroom("still has headroom", metav1.ConditionTrue, "EnoughRoom", "")
	cluster.Change(t, d, func() { replicas := int32(4); d.Spec.Replicas = &replicas })
	headroom("has no headroom", metav1.ConditionFalse, "NoPlace", "which request 4 CPU")
	// The node and the number of pods in the event depend on when the manager saw the last pod's
	// assignment to its node.
	cluster.EventuallyEvent(t, "NodePool", "headroom", "Warning HeadroomLost: if node headroom-")
	framework.Eventually(t, "the metric says so", func() error {
		return gauge(manager.ReadMetrics(t), 0, "tidekeeper_nodepool_headroom", map[string]string{"pool": "headroom"})
	})

	// Both nodes are in the same zone, so after the loss of the zone no pod fits anywhere.
	cluster.Change(t, p, func() { p.Spec.Headroom = &tidekeeperv1.Headroom{Zones: 1} })
	headroom("is in no zone", metav1.ConditionUnknown, "NoZones", "topology.kubernetes.io/zone")
	for _, node := range []string{"headroom-1", "headroom-2"} {
		relabel(t, node, map[string]string{corev1.LabelTopologyZone: "a"})
	}
	headroom("is in one zone", metav1.ConditionFalse, "NoPlace", "zone a is lost, no place is found for 4 of its 4 pods")

	// A pool without spec.headroom has no condition Headroom.
	cluster.Change(t, p, func() { p.Spec.Headroom = nil })
	eventuallyPool(t, "headroom", "has no condition Headroom", func(p *tidekeeperv1.NodePool) error {
		if c := meta.FindStatusCondition(p.Status.Conditions, "Headroom"); c != nil {
			return fmt.Errorf("it is %s: %s", c.Status, c.Message)
		}
		return nil
	})
}
