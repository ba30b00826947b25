// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// These tests check that indexes are used. TestPodEventCostsTheSameInALargeWorld,
// TestEvictionsCostTheSameInALargeWorld and TestRestartsOfAWorkloadCostTheSameInALargeCluster
// measure that an index lookup costs less than iterating over all objects.

// TestManager_PodsByNodeFromAnIndex checks that the manager reads the pods that a NoExecute taint
// would evict from an index of its cache, not from the API server.
func TestManager_PodsByNodeFromAnIndex(t *testing.T) {
	cluster.StartManager(t, "--no-execute-interval=100ms")
	addMembers(t, "s25", 1)
	d := deployment("s25", 2, corev1.PodSpec{
		NodeSelector: map[string]string{role("s25"): ""},
		Containers:   []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	cluster.Apply(t, d)
	eventuallyReady(t, d)

	audit := cluster.Audit(t, "tidekeeper/")
	p := framework.Pool("s25")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/s25", Effect: corev1.TaintEffectNoExecute}}
	cluster.Apply(t, p)
	healthyWith(t, "s25", 1)
	cluster.EventuallyEvent(t, "NodePool", "s25", "Normal EvictingPods: adding a NoExecute taint to node s25-1")
	for _, r := range audit.Requests(t) {
		if r.Resource == "pods" {
			t.Errorf("pods are read from the API server: %s", r)
		}
	}
}

// TestManager_RestartsByTargetFromAnIndex checks that a cache index finds a workload's
// ScheduledRestarts. A change of the workload must queue only its own ScheduledRestarts, and must
// not cause a read from the API server.
func TestManager_RestartsByTargetFromAnIndex(t *testing.T) {
	const others = 20
	manager := cluster.StartManager(t)
	cluster.AddNodes(t, "s25t", 1)
	set := workload(t, "StatefulSet", "s25t").(*appsv1.StatefulSet)
	for i := range others {
		other := restartOf("StatefulSet", fmt.Sprint("s25t-other-", i))
		if i%2 == 0 {
			other.Spec.TargetRef = tidekeeperv1.TargetRef{Kind: "Deployment", Name: "s25t"} // A target with the same name, but of a different kind.
		}
		cluster.Apply(t, other)
		eventuallyRestartIs(t, other, "TargetNotFound")
	}
	r := restartOf("StatefulSet", "s25t")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	manager.AssertIdle(t)

	reconciles := func() float64 {
		return manager.ReadMetrics(t).SumOf("controller_runtime_reconcile_total", "controller", "scheduled-restart")
	}
	audit, before := cluster.Audit(t, "tidekeeper/"), reconciles()
	cluster.Change(t, set, func() {
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	})
	eventuallyRestartIs(t, r, "StrategyOnDelete")
	manager.AssertIdle(t)
	// A few reconciles are expected: for the edit, and for the status updates of the workload and
	// of the ScheduledRestart.
	if got := reconciles() - before; got < 1 || got >= others {
		t.Errorf("%.0f reconciles, as there are %d ScheduledRestarts of other workloads; want a few, of the one", got, others)
	}
	for _, request := range audit.Requests(t) {
		if !request.Writes() {
			t.Errorf("read from the API server: %s", request)
		}
	}
}
