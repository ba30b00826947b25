// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/rescue"
)

// LeastDeletionCost is the value of the annotation [corev1.PodDeletionCost] with which the pods in
// [Output.First] are deleted before all other ready pods of their ReplicaSet.
const LeastDeletionCost = "-2147483648"

// MayNeedRescue reports whether [Decide] needs the pod's Deployment, to decide between an eviction
// and a restart.
func MayNeedRescue(pod *corev1.Pod) bool {
	_, is := rescue.DeploymentOf(pod)
	return is && pod.DeletionTimestamp.IsZero() && pods.IsConditionTrue(pod, corev1.PodReady)
}

// rescue reports whether the pod must not be evicted now, because a restart of its Deployment moves
// the pod. If the restart must be requested first, rescue adds the Deployment to the output.
func (d *decider) rescue(pod *corev1.Pod) bool {
	key, is := rescue.DeploymentOf(pod)
	deployment := d.Deployments[key]
	restart, requested := d.Restarts[key]
	// No pod is evicted during the restart: the Deployment could replace it with a pod of the old
	// template, which the restart would have to replace again. If the Deployment is rolling out,
	// the restart may have started although its cached state is Waiting.
	if restart.State == rescue.Running || restart.State == rescue.Waiting && deployment != nil && rescue.IsRolling(deployment) {
		return d.awaits(pod, restart)
	}
	if !is || deployment == nil || !pods.IsConditionTrue(pod, corev1.PodReady) {
		return false
	}
	if rescue.WhyEvicted(deployment, d.world.NeverAllows(pod), d.ready[key]+d.LeavingElsewhere[key]) != "" {
		return false
	}
	requested = requested && !restart.Spares(pod)
	switch {
	case restart.State != rescue.Waiting && rescue.IsRolling(deployment):
		d.blocked(pod, restartWaits, "its Deployment is rolling out")
		return true
	case !requested:
		if r, refused := d.NotRequested[key]; refused {
			d.blocked(pod, restartFailed, "a restart that moves it cannot be requested: "+r.Reason)
			if d.Now.Before(r.Again) {
				d.wake(r.Again)
				return true
			}
		}
		if !slices.Contains(d.out.Restart, key) {
			d.out.Restart = append(d.out.Restart, key)
		}
		if deployment.Status.ReadyReplicas > d.ready[key] && pod.Annotations[corev1.PodDeletionCost] != LeastDeletionCost {
			d.out.First = append(d.out.First, pod)
		}
		return true
	case restart.State == rescue.Waiting:
		return d.awaits(pod, restart)
	case restart.State == rescue.Succeeded:
		d.blocked(pod, restartWaits, "its Deployment was restarted, and has not deleted it yet")
		return true
	default:
		d.blocked(pod, restartFailed, "it could not be moved by a restart: "+restart.Message)
		return false
	}
}

// awaits records the message of the restart that moves the pod, unless it is empty, as the reason
// why the pod stays. It always returns true, as the result of rescue.
func (d *decider) awaits(pod *corev1.Pod, restart rescue.Restart) bool {
	if restart.Message != "" {
		d.blocked(pod, restartWaits, "the restart that moves it waits: "+restart.Message)
	}
	return true
}
