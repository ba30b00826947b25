// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// The large world.
const (
	manyNodes    = 1_000
	manyPods     = 20_000
	manyRestarts = 2_000
)

// largeWorld returns the kinds of the large world: one pool in three zones, pods of 200
// Deployments, and restarts of which many start in the same minute.
func largeWorld() []Kind {
	amount := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("110")}
	}
	pools := &tidekeeperv1.NodePoolList{Items: []tidekeeperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}}}
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	for i := range manyNodes {
		nodes.Items = append(nodes.Items, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), Labels: map[string]string{"node-role.kubernetes.io/worker": "", corev1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}},
			Status:     corev1.NodeStatus{Capacity: amount("16", "64Gi"), Allocatable: amount("16", "64Gi"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	controller := true
	for i := range manyPods {
		set := i % 200
		created := metav1.Time{Time: noon.Add(-time.Duration(i) * time.Second)}
		requests := corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", 300+50*(set%10))), "memory": resource.MustParse("2Gi")}
		pods.Items = append(pods.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprint("team-", set%20), Name: fmt.Sprintf("app-%d-%d", set, i), CreationTimestamp: created,
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-5d8f", set), UID: types.UID(fmt.Sprint(set)), Controller: &controller}},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%04d", i%manyNodes), Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: requests}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: created}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: created.Add(9 * time.Second)}},
			}},
		})
	}
	restarts := &tidekeeperv1.ScheduledRestartList{}
	for i := range manyRestarts {
		r := tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i%20), Name: fmt.Sprint("app-", i), UID: types.UID(fmt.Sprint("r", i))}}
		r.Spec.Schedule, r.Spec.TimeZone = "0 3 * * *", "UTC"
		r.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "Deployment", Name: r.Name}
		r.Spec.StartingDeadlineSeconds, r.Spec.FailureLimit = 3600, 3
		restarts.Items = append(restarts.Items, r)
	}
	var f fakeKind
	kinds := []Kind{
		f.kind(kindPools, &tidekeeperv1.NodePool{}, pools, nil), f.kind(kindNodes, &corev1.Node{}, nodes, nil), f.kind(kindPods, &corev1.Pod{}, pods, nil),
		f.kind(kindRestarts, &tidekeeperv1.ScheduledRestart{}, restarts, nil),
	}
	for _, name := range restartsKinds[1:] {
		if name == kindPods {
			continue
		}
		kinds = append(kinds, f.kind(name, &appsv1.Deployment{}, &appsv1.DeploymentList{}, nil))
	}
	return kinds
}

// In the large world each page has its data in time, and is small enough to be sent often. The
// limits are generous: what they find is work that grows with the square of the world.
func TestLargeWorld(t *testing.T) {
	const (
		first      = 8 * time.Second
		navigation = 2 * time.Second // 0.3 s on a machine with nothing else to do
		mostBytes  = 1 << 20
		mostMemory = 400 << 20
	)
	s := newTestSite(t, nil, largeWorld()...)
	for _, path := range []string{"/", "/pools/worker", "/capacity", "/restarts", "/pods"} {
		began := time.Now()
		e, err := s.render(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		cold := time.Since(began)
		began = time.Now()
		if _, err := s.render(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		warm := time.Since(began)
		t.Logf("%-14s %7d bytes, first %s, then %s", path, len(e.HTML), cold.Round(time.Millisecond), warm.Round(time.Millisecond))
		if cold > first || warm > navigation || len(e.HTML) > mostBytes {
			t.Errorf("%s: %d bytes in %s and then %s, want at most %d, %s and %s", path, len(e.HTML), cold, warm, mostBytes, first, navigation)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB in use", m.HeapInuse>>20)
	if m.HeapInuse > mostMemory {
		t.Errorf("%d MiB in use, want at most %d", m.HeapInuse>>20, mostMemory>>20)
	}
}
