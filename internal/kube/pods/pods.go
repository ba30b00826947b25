// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods provides helper functions for pods. The functions are pure: their results depend
// only on their arguments.
package pods

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// IsTerminal reports whether the pod has terminated, so that its containers will never run again
// and it uses no resources of its node.
func IsTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsActive reports whether the pod has neither terminated nor been deleted. Workload controllers
// count only active pods as replicas, and replace all others.
func IsActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !IsTerminal(pod)
}

// IsOfDaemonSet reports whether a DaemonSet controls the pod.
func IsOfDaemonSet(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && controller.Kind == "DaemonSet"
}

// Condition returns the pod's condition of the given type, or nil if there is none. If the pod has
// several conditions of this type, it returns the most recently changed condition.
func Condition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	var found *corev1.PodCondition
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != conditionType {
			continue
		}
		if found == nil || cmp.Or(
			c.LastTransitionTime.Compare(found.LastTransitionTime.Time),
			cmp.Compare(c.Status, found.Status),
			cmp.Compare(c.Reason, found.Reason),
			cmp.Compare(c.Message, found.Message),
		) > 0 {
			found = c
		}
	}
	return found
}

// IsConditionTrue reports whether the pod's condition of the given type has the status True.
func IsConditionTrue(pod *corev1.Pod, conditionType corev1.PodConditionType) bool {
	c := Condition(pod, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// ContainerStatus returns the first status of the named container, or nil if there is none.
func ContainerStatus(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// TemplateHashLabels returns the pod labels that [Workload] reads. A cache that drops labels must
// retain them.
func TemplateHashLabels() []string {
	var labels []string
	for _, k := range workload.Kinds {
		if k.TemplateHashLabel != "" {
			labels = append(labels, k.TemplateHashLabel)
		}
	}
	return labels
}

// WorkloadName returns the workload that the pod belongs to, such as Deployment/web, or Pod/NAME if
// the pod has no controller.
func WorkloadName(pod *corev1.Pod) string {
	kind, name := Workload(pod)
	if kind == "" {
		return "Pod/" + pod.Name
	}
	return kind + "/" + name
}

// IsReplaced reports whether the pod's controller would replace the pod after its deletion. It
// returns false for pods without a controller, and for static pods, whose controller is their Node.
func IsReplaced(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind != "Node"
}

// Workload returns the kind and name of the workload that the pod belongs to. Both are empty if the
// pod has no controller.
//
// The workload is the pod's controller, except for pods of a Deployment or Rollout. Such a pod's
// controller is a ReplicaSet, whose name consists of the workload's name and the hash of the pod
// template. Workload derives the workload's name from this name, without reading the ReplicaSet.
func Workload(pod *corev1.Pod) (kind, name string) {
	return WorkloadOf(metav1.GetControllerOfNoCopy(pod), pod.Labels)
}

// WorkloadOf is like [Workload], but takes the pod's controller, which may be nil, and the pod's
// labels.
func WorkloadOf(controller *metav1.OwnerReference, labels map[string]string) (kind, name string) {
	if controller == nil {
		return "", ""
	}
	if controller.Kind != "ReplicaSet" {
		return controller.Kind, controller.Name
	}
	for _, k := range workload.Kinds {
		if hash := labels[k.TemplateHashLabel]; hash != "" {
			if name, ok := strings.CutSuffix(controller.Name, "-"+hash); ok {
				return k.Kind, name
			}
		}
	}
	return controller.Kind, controller.Name
}
