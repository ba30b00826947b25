// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

func inputOf(name string, d *appsv1.Deployment, r map[types.NamespacedName]rescue.Restart) Input {
	return Input{
		Now: now, Pods: []corev1.Pod{pod(func(p *corev1.Pod) { p.Name, p.UID = name, types.UID(name) })},
		Deployments: map[types.NamespacedName]*appsv1.Deployment{web: d}, Restarts: r, SingleReplicas: tidekeeperv1.SingleReplicasRestart,
	}
}

// TestTwoReplicasOnTwoDrainedNodes checks a Deployment whose pods are all on nodes that are being
// drained.
func TestTwoReplicasOnTwoDrainedNodes(t *testing.T) {
	d := deployment(2, 2, func(*appsv1.Deployment) {})
	in := inputOf("web-a", d, nil)
	in.LeavingElsewhere = map[types.NamespacedName]int32{web: 1}
	if out := Decide(in); len(out.Evict) != 0 || len(out.Restart) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestPodsThatAreReplacedFirst checks that a restart replaces the pods on the drained node first if the
// Deployment has ready pods on other nodes, and that a pod is annotated once.
func TestPodsThatAreReplacedFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		cost     string
		first    int
	}{
		"all its pods are on the node":        {replicas: 1},
		"there are ready pods on other nodes": {replicas: 3, first: 1},
		"its own cost of deletion":            {replicas: 3, cost: "7", first: 1},
		"it is annotated already":             {replicas: 3, cost: LeastDeletionCost},
	} {
		in := inputOf("web-a", deployment(tc.replicas, tc.replicas, func(*appsv1.Deployment) {}), nil)
		withBudget(tc.replicas, tc.replicas)(&in)
		if tc.cost != "" {
			in.Pods[0].Annotations = map[string]string{corev1.PodDeletionCost: tc.cost}
		}
		if out := Decide(in); len(out.Restart) != 1 || len(out.First) != tc.first {
			t.Errorf("%s: %d restarts, %d pods are replaced first, want 1 and %d", name, len(out.Restart), len(out.First), tc.first)
		}
	}
}

// TestNewPodOfASucceededRestart checks a pod created by the restart that moved its predecessor off
// another node.
func TestNewPodOfASucceededRestart(t *testing.T) {
	out := Decide(inputOf("web-new", deployment(1, 1, func(*appsv1.Deployment) {}), map[types.NamespacedName]rescue.Restart{web: {State: rescue.Succeeded}}))
	if len(out.Evict) == 0 && len(out.Restart) == 0 {
		t.Errorf("the pod is neither evicted nor restarted, for %q", out.Reason)
	}
}

// TestRolloutOfAnotherClient checks a requested restart that was skipped because of a rollout in
// progress.
func TestRolloutOfAnotherClient(t *testing.T) {
	d := deployment(1, 1, func(d *appsv1.Deployment) {
		d.Generation, d.Status.ObservedGeneration = 2, 2
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas = 2, 1, 1 // The new pod is not ready yet.
	})
	out := Decide(inputOf("web-old", d, map[types.NamespacedName]rescue.Restart{web: {State: rescue.Failed, Message: "Skipped, AlreadyRestarted: web has been restarted since"}}))
	if len(out.Evict) == 1 {
		t.Error("the only ready pod is evicted while its successor starts")
	}
}

// TestRunningRestart checks that no pod of a Deployment is evicted while the restart that moves its pods
// is in progress, also when the Deployment has ready pods on other nodes by now.
func TestRunningRestart(t *testing.T) {
	d := deployment(2, 2, func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas = 3, 1
	})
	for state, evicted := range map[rescue.RestartState]int{rescue.Waiting: 0, rescue.Running: 0, rescue.Succeeded: 1, rescue.Failed: 1} {
		out := Decide(inputOf("web-old", d, map[types.NamespacedName]rescue.Restart{web: {State: state}}))
		if len(out.Evict) != evicted || len(out.Restart) != 0 || out.Left != 1 {
			t.Errorf("with a restart that is %s: %+v", state, out)
		}
	}
}
