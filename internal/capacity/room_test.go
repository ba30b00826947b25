// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestRoom(t *testing.T) {
	own := corev1.Taint{Key: "pool", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	nodes := []corev1.Node{}
	names := []string{}
	for _, change := range []func(*corev1.Node){
		func(*corev1.Node) {},
		func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{own} },
		func(n *corev1.Node) { n.Spec.Unschedulable = true },
		func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
		func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "pool", Value: "y", Effect: corev1.TaintEffectNoSchedule}}
		},
		func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "hint", Effect: corev1.TaintEffectPreferNoSchedule}}
		},
	} {
		n := aNode(fmt.Sprintf("n%d", len(nodes)), "cpu", "4", "memory", "8Gi", "pods", "2")
		change(&n)
		nodes, names = append(nodes, n), append(names, n.Name)
	}
	pods := []corev1.Pod{
		aPod("a", "ReplicaSet", "a", "n0", "cpu", "1", "memory", "1Gi"),
		aPod("d", "DaemonSet", "d", "n0", "cpu", "500m"),
		aPod("b", "ReplicaSet", "b", "n1", "cpu", "3", "memory", "1Gi"),
		aPod("c", "ReplicaSet", "c", "n2", "cpu", "1", "memory", "1Gi"),
	}
	got := newCluster(nodes, pods).Members(append(names, "n0", "unknown")).Room([]corev1.Taint{own})
	gone := list("cpu", "4", "memory", "8Gi", "pods", "2")
	equal(t, "room", Room{
		Nodes: 7, UsableNodes: 2,
		Allocatable: list("cpu", "28", "memory", "56Gi", "pods", "14"),
		Requested:   list("cpu", "5500m", "memory", "3Gi", "pods", "4"),
		// Node n0 has reached its pod limit. Its requested resources count as usable, its other
		// resources as lost.
		Usable:     list("cpu", "9500m", "memory", "17Gi", "pods", "6"),
		Free:       list("cpu", "5", "memory", "15Gi", "pods", "3"),
		DaemonSets: list("cpu", "500m", "memory", "0", "pods", "1"),
		Lost: []tidekeeperv1.Lost{
			lost(tidekeeperv1.LostBeingDeleted, gone), lost(tidekeeperv1.LostNotReady, gone), lost(tidekeeperv1.LostCordoned, gone), lost(tidekeeperv1.LostOtherTaint, gone),
			lost(tidekeeperv1.LostPodLimitReached, list("cpu", "2500m", "memory", "7Gi", "pods", "0")),
		},
		EmptyNode:   fitOn("n1", list("cpu", "4", "memory", "8Gi", "pods", "2")),
		LargestFits: []tidekeeperv1.LargestFit{fitOn("n6", list("cpu", "4", "memory", "8Gi", "pods", "2"))},
	}, got)
}

func TestUtilization(t *testing.T) {
	ended := aPod("ended", "Job", "j", "n", "cpu", "1")
	ended.Status.Phase = corev1.PodSucceeded
	c := newCluster([]corev1.Node{
		aNode("n", "cpu", "4", "memory", "8Gi", "example.com/none", "0"), aNode("other", "cpu", "1", "nvidia.com/gpu", "1"),
	}, []corev1.Pod{
		aPod("a", "ReplicaSet", "a", "n", "cpu", "1500m", "nvidia.com/gpu", "1"), ended, aPod("b", "ReplicaSet", "b", "other", "cpu", "2"),
	})
	for _, tc := range []struct {
		node      string
		requested corev1.ResourceList
		percent   map[corev1.ResourceName]int32
	}{
		{"n", list("cpu", "1500m", "memory", "0"), map[corev1.ResourceName]int32{"cpu": 37, "memory": 0}},
		{"other", list("cpu", "2", "nvidia.com/gpu", "0"), map[corev1.ResourceName]int32{"cpu": 200, "nvidia.com/gpu": 0}},
		{"unknown", nil, nil},
	} {
		requested, percent := c.Members([]string{tc.node}).Utilization()
		equal(t, tc.node+": requested", tc.requested, requested)
		equal(t, tc.node+": percent", tc.percent, percent)
	}
}
