// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rescue decides whether a restart must move a pod of a Deployment, because its eviction
// would take the Deployment down or is never allowed. The package has no client, clock or logger. Its
// folder requests has the package that asks for such restarts.
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

// InProgress reports whether the restart waits or runs.
func (r *Restart) InProgress() bool { return r.State == Waiting || r.State == Running }

// Spares reports whether the restart has succeeded and did not replace the pod, because the pod was
// created after it.
func (r *Restart) Spares(pod *corev1.Pod) bool {
	return r.State == Succeeded && !pod.CreationTimestamp.Time.Before(r.Tick)
}

// DeploymentOf returns the Deployment that the pod belongs to; false if it belongs to no
// Deployment.
func DeploymentOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	kind, name := pods.Workload(pod)
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, kind == "Deployment"
}

// WhyEvicted returns the reason for which a ready pod of the Deployment is evicted instead of moved
// by a restart; "" if a restart moves it. never is the result of the NeverAllows of a drain.World. leaving is the
// number of the Deployment's ready pods that have to leave at this time, including the pod itself.
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

// IsRolling reports whether a rollout of the Deployment, which replaces its pods, is in progress.
func IsRolling(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration < d.Generation || s.UpdatedReplicas < s.Replicas
}
