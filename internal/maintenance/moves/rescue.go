// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package moves

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// RestartState is the state of a restart that was requested for a Deployment.
type RestartState string

// The states of a restart.
const (
	// Waiting means that the restart has not started.
	Waiting RestartState = "Waiting"
	// Running means that the restart has started, and has not ended.
	Running RestartState = "Running"
	// Succeeded means that the restart has replaced all pods that existed when it was requested.
	Succeeded RestartState = "Succeeded"
	// Failed means that the restart was missed, was skipped or has failed.
	Failed RestartState = "Failed"
)

// Restart is a restart that was requested for a Deployment.
type Restart struct {
	State RestartState
	// Tick is the time for which the restart was requested. The restart does not replace pods that
	// were created after it.
	Tick time.Time
	// Message explains why a restart waits or has failed.
	Message string
}

// DeploymentOf returns the Deployment that the pod belongs to; false if it belongs to no
// Deployment.
func DeploymentOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	kind, name := pods.Workload(pod)
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, kind == "Deployment"
}

// MayNeedRescue reports whether [Decide] needs the pod's Deployment.
func MayNeedRescue(pod *corev1.Pod) bool {
	_, is := DeploymentOf(pod)
	return is && pod.DeletionTimestamp.IsZero() && pods.IsConditionTrue(pod, corev1.PodReady)
}

// rescue reports whether a restart of its Deployment moves the pod, so that the pod must not be
// evicted now.
func (d *decider) rescue(pod *corev1.Pod) bool {
	key, is := DeploymentOf(pod)
	deployment := d.Deployments[key]
	restart, requested := d.Restarts[key]
	// The Deployment would replace an evicted pod by a pod of the old template, which the restart replaces
	// once more. A restart from the cache may have started although it still seems to wait.
	if restart.State == Running || restart.State == Waiting && deployment != nil && isRolling(deployment) {
		return d.awaits(pod, restart)
	}
	if !is || deployment == nil || !pods.IsConditionTrue(pod, corev1.PodReady) {
		return false
	}
	never := d.neverAllowed(pod)
	if least, possible := readyDuring(deployment); !possible || least == 0 || never && least < replicasOf(deployment) {
		return false // A restart would do as much harm as an eviction.
	}
	if d.ready[key]+d.LeavingElsewhere[key] < deployment.Status.ReadyReplicas && !never {
		return false // The Deployment has ready pods elsewhere, and its budget can allow the eviction.
	}
	if requested && restart.State == Succeeded && !pod.CreationTimestamp.Time.Before(restart.Tick) {
		requested = false
	}
	switch {
	case restart.State != Waiting && isRolling(deployment):
		d.blocked(pod, restartWaits, "its Deployment is rolling out")
		return true
	case !requested:
		if !slices.Contains(d.out.Restart, key) {
			d.out.Restart = append(d.out.Restart, key)
		}
		return true
	case restart.State == Waiting:
		return d.awaits(pod, restart)
	case restart.State == Succeeded:
		d.blocked(pod, restartWaits, "its Deployment was restarted, and has not deleted it yet")
		return true
	default:
		d.blocked(pod, restartFailed, "it could not be moved by a restart: "+restart.Message)
		return false
	}
}

// awaits records why the restart that moves the pod waits, if it does. It returns true.
func (d *decider) awaits(pod *corev1.Pod, restart Restart) bool {
	if restart.Message != "" {
		d.blocked(pod, restartWaits, "the restart that moves it waits: "+restart.Message)
	}
	return true
}

func replicasOf(d *appsv1.Deployment) int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

// readyDuring returns the number of pods that are ready at all times during a restart of the Deployment
// whose pods are all ready. It returns false if a restart does not replace the pods one after the other.
func readyDuring(d *appsv1.Deployment) (least int, possible bool) {
	replicas, rolling := replicasOf(d), d.Spec.Strategy.RollingUpdate
	if d.Spec.Paused || replicas == 0 || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, false
	}
	surge, unavailable := intstr.FromString("25%"), intstr.FromString("25%")
	if rolling != nil && rolling.MaxSurge != nil {
		surge = *rolling.MaxSurge
	}
	if rolling != nil && rolling.MaxUnavailable != nil {
		unavailable = *rolling.MaxUnavailable
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	if err != nil {
		return 0, false
	}
	fewer, err := intstr.GetScaledValueFromIntOrPercent(&unavailable, replicas, false)
	if err != nil {
		return 0, false
	}
	if more == 0 && fewer == 0 {
		fewer = 1 // As the Deployment controller does.
	}
	return max(0, replicas-fewer), true
}

// isRolling reports whether a rollout of the Deployment, which replaces its pods, is in progress.
func isRolling(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration < d.Generation || s.UpdatedReplicas < s.Replicas
}

// neverAllowed reports whether a PodDisruptionBudget of the pod allows no disruption even while all
// pods are healthy.
func (d *decider) neverAllowed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(d.Budgets, func(b policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		return err == nil && b.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) &&
			b.Status.ExpectedPods > 0 && b.Status.DesiredHealthy >= b.Status.ExpectedPods
	})
}
