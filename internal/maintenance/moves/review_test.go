// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

func reviewInput(name string, d *appsv1.Deployment, r map[types.NamespacedName]Restart) Input {
	return Input{
		Now: now, Pods: []corev1.Pod{pod(func(p *corev1.Pod) { p.Name, p.UID = name, types.UID(name) })},
		Deployments: map[types.NamespacedName]*appsv1.Deployment{web: d}, Restarts: r, SingleReplicas: tidekeeperv1.SingleReplicasRestart,
	}
}

// 7. Two replicas, each on a node that is being drained (maxUnavailable 2, or two NodeMaintenances).
func TestReview_TwoReplicasOnTwoDrainedNodes(t *testing.T) {
	d := deployment(2, 2, func(*appsv1.Deployment) {})
	a, b := Decide(reviewInput("web-a", d, nil)), Decide(reviewInput("web-b", d, nil))
	if len(a.Evict) == 1 && len(b.Evict) == 1 {
		t.Error("both ready pods of the Deployment are evicted at the same time")
	}
}

// 8. The restart has succeeded for the other node that began in the same second, and its new pod is here.
func TestReview_NewPodOfASucceededRestart(t *testing.T) {
	out := Decide(reviewInput("web-new", deployment(1, 1, func(*appsv1.Deployment) {}), map[types.NamespacedName]Restart{web: {State: Succeeded}}))
	if len(out.Evict) == 0 && len(out.Restart) == 0 {
		t.Errorf("the pod is neither evicted nor restarted, for %q", out.Reason)
	}
}

// 9. Somebody else's rollout is in progress, so that the request was skipped as AlreadyRestarted.
func TestReview_EvictedInTheMiddleOfARollout(t *testing.T) {
	d := deployment(1, 1, func(d *appsv1.Deployment) {
		d.Generation, d.Status.ObservedGeneration = 2, 2
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas = 2, 1, 1 // The new pod is not ready yet.
	})
	out := Decide(reviewInput("web-old", d, map[types.NamespacedName]Restart{web: {State: Failed, Message: "Skipped, AlreadyRestarted: web has been restarted since"}}))
	if len(out.Evict) == 1 {
		t.Error("the only ready pod is evicted while its successor starts")
	}
}
