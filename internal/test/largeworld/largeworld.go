// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package largeworld creates the objects of a large cluster for tests of the dashboard page.
package largeworld

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Numbers of objects in a World.
const (
	Nodes    = 1_000
	Pods     = 20_000
	Restarts = 2_000
)

// World holds the objects of a large cluster.
type World struct {
	Pools    *tidekeeperv1.NodePoolList
	Nodes    *corev1.NodeList
	Pods     *corev1.PodList
	Restarts *tidekeeperv1.ScheduledRestartList
}

// New returns a World with a node pool in three zones, restarts that all start in the same minute,
// and the pods of 200 Deployments. The pods were created one second apart, the last of them at
// `now`.
func New(now time.Time) *World {
	amount := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("110")}
	}
	pools := &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}}}
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	for i := range Nodes {
		nodes.Items = append(nodes.Items, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), Labels: map[string]string{"node-role.kubernetes.io/worker": "", corev1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}},
			Status:     corev1.NodeStatus{Capacity: amount("16", "64Gi"), Allocatable: amount("16", "64Gi"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	controller := true
	for i := range Pods {
		set := i % 200
		created := metav1.Time{Time: now.Add(-time.Duration(i) * time.Second)}
		requests := corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", 300+50*(set%10))), "memory": resource.MustParse("2Gi")}
		pods.Items = append(pods.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprint("team-", set%20), Name: fmt.Sprintf("app-%d-%d", set, i), CreationTimestamp: created,
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-5d8f", set), UID: types.UID(fmt.Sprint(set)), Controller: &controller}},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%04d", i%Nodes), Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: requests}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: created}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: created.Add(9 * time.Second)}},
			}},
		})
	}
	restarts := &tidekeeperv1.ScheduledRestartList{}
	for i := range Restarts {
		r := tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i%20), Name: fmt.Sprint("app-", i), UID: types.UID(fmt.Sprint("r", i))}}
		r.Spec.Schedule, r.Spec.TimeZone = "0 3 * * *", "UTC"
		r.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "Deployment", Name: r.Name}
		r.Spec.StartingDeadlineSeconds, r.Spec.FailureLimit = 3600, 3
		restarts.Items = append(restarts.Items, r)
	}
	return &World{pools, nodes, pods, restarts}
}
