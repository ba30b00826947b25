// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rescue decides whether a pod of a Deployment must be moved by a restart, because an
// eviction would take the Deployment down or is never allowed. The package has no client, clock or
// logger. The package in its folder requests creates the requests for such restarts.
package rescue

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// RestartState is the state of a restart that was requested for a Deployment.
type RestartState string

// States of a restart.
const (
	// Waiting means that the restart was requested, and has not started.
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
	// were created at that time or later.
	Tick time.Time
	// Message explains why a restart waits or has failed.
	Message string
}

// InProgress reports whether the restart waits or runs.
func (r *Restart) InProgress() bool { return r.State == Waiting || r.State == Running }

// Spares reports whether the restart has succeeded without replacing the pod, because the pod was
// created at the time for which the restart was requested, or later.
func (r *Restart) Spares(pod *corev1.Pod) bool {
	return r.State == Succeeded && !pod.CreationTimestamp.Time.Before(r.Tick)
}

// DeploymentOf returns the Deployment that the pod belongs to. It returns false if the pod belongs
// to no Deployment.
func DeploymentOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	kind, name := pods.Workload(pod)
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, kind == "Deployment"
}

// WhyEvicted returns the reason why a ready pod of the Deployment is evicted instead of being moved
// by a restart. It returns "" if a restart moves the pod. never is true if a PodDisruptionBudget of
// the pod never allows an eviction. leaving is the number of the Deployment's ready pods that have
// to leave their nodes now, including the pod itself.
func WhyEvicted(d *appsv1.Deployment, never bool, leaving int32) string {
	least, possible := readyDuring(d)
	switch {
	case d.Spec.Paused:
		return "it is paused, so that it is not restarted"
	case !possible:
		return "a restart does not replace its pods one after the other"
	case least == 0:
		return "a restart would leave no pod ready, because its strategy has no surge or lets all pods be unavailable"
	case never && least < replicasOf(d):
		return fmt.Sprintf("a restart would leave %d of %d pods ready, and its PodDisruptionBudget asks for all", least, replicasOf(d))
	case !never && leaving < d.Status.ReadyReplicas:
		return "other pods of it stay ready, and its PodDisruptionBudgets can allow the eviction"
	default:
		return ""
	}
}

func replicasOf(d *appsv1.Deployment) int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

// readyDuring returns the minimum number of ready pods during a restart of the Deployment, if all
// of its pods are ready at the beginning. It returns false if a restart does not replace the pods
// one after the other.
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

// IsRolling reports whether a rollout of the Deployment, which replaces its pods, is in progress.
func IsRolling(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration < d.Generation || s.UpdatedReplicas < s.Replicas
}
