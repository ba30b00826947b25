// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestDaemonSetWithADeadNode checks that a restart of a DaemonSet does not wait for the pods on a
// dead node, neither before it starts nor before it completes, and that its record counts these
// pods.
func TestDaemonSetWithADeadNode(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "dead", 3)
	d := workload(t, "DaemonSet", "dead").(*appsv1.DaemonSet)
	maxUnavailable := func(n int32) {
		cluster.Change(t, d, func() {
			d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(n))},
			}
		})
	}
	cluster.Sandbox(t, "nodes", "not-ready", "dead-3")
	framework.Eventually(t, "the node has the not-ready taints", func() error {
		node := framework.Node("dead-3")
		cluster.Refresh(t, node)
		return diff(2, len(node.Spec.Taints))
	})
	// finalize sets the pods' finalizers, to simulate that pods on a dead node are never finally
	// deleted.
	finalize := func(finalizers ...string) {
		pods := &corev1.PodList{}
		if err := cluster.List(context.WithoutCancel(t.Context()), pods, client.InNamespace(d.Namespace), client.MatchingLabels{"app": "dead"}); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Spec.NodeName != "dead-3" {
				continue
			}
			before := pod.DeepCopy()
			pod.Finalizers = finalizers
			if err := cluster.Patch(context.WithoutCancel(t.Context()), pod, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
	finalize("example.com/dead")
	t.Cleanup(func() { finalize() })
	// The manager knows that the node is not ready once the node's pool reports that.
	known := pool("dead")
	known.Spec.Taints = nil
	known.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{corev1.LabelHostname: "dead-3"}}
	cluster.Apply(t, known)
	eventuallyReason(t, "dead", tidekeeperv1.ReasonNodesNotReady)
	r := restartOf("DaemonSet", "dead")
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")

	// With Kubernetes' default of one unavailable pod, the pod on the dead node blocks the
	// replacement of all other pods, so the restart does not start.
	tick := request(t, r)
	eventuallyRestartIs(t, r, "TargetUnhealthy")
	if got := restartedAt(t, d); got != "" {
		t.Errorf("it was restarted for %s", got)
	}

	maxUnavailable(2)
	record := eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	if record.Pods != 2 || record.PodsLeftOut != 1 {
		t.Errorf("record %+v, want that 2 pods were restarted and 1 was left out", record)
	}
	if ready := meta.FindStatusCondition(r.Status.Conditions, "Ready"); ready == nil || r.Status.ConsecutiveFailures != 0 {
		t.Errorf("Ready %v with %d failures", ready, r.Status.ConsecutiveFailures)
	}
}
