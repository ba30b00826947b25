// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods has small functions about pods that several packages share. It is pure: its only
// input is the pod.
package pods

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// IsTerminal reports whether the pod has ended: its containers do not run and are not started
// again, so that it uses no resources of its node.
func IsTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsActive reports whether the pod has neither ended nor been deleted. Workload controllers
// count active pods as replicas, and replace the others.
func IsActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !IsTerminal(pod)
}

// Condition returns the condition of the given type; nil if there is none. If the pod has
// several, it returns the condition that changed last, whatever their order.
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

// IsConditionTrue reports whether the pod's condition of the given type is true.
func IsConditionTrue(pod *corev1.Pod, conditionType corev1.PodConditionType) bool {
	c := Condition(pod, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// ContainerStatus returns the status of the named container, the first if there are several;
// nil if there is none.
func ContainerStatus(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// TemplateHashLabels returns the labels that [Workload] reads. A cache that drops labels
// must keep them.
func TemplateHashLabels() []string {
	var labels []string
	for _, k := range workload.Kinds {
		if k.TemplateHashLabel != "" {
			labels = append(labels, k.TemplateHashLabel)
		}
	}
	return labels
}

// WorkloadName returns the workload that the pod belongs to, such as Deployment/web; Pod/NAME
// if the pod has no controller.
func WorkloadName(pod *corev1.Pod) string {
	kind, name := Workload(pod)
	if kind == "" {
		return "Pod/" + pod.Name
	}
	return kind + "/" + name
}

// IsReplaced reports whether the pod has a controller that creates a replacement after its
// deletion. The controller of a static pod is its Node.
func IsReplaced(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind != "Node"
}

// Workload returns the kind and the name of the workload that the pod belongs to; both are
// empty if the pod has no controller.
//
// The workload is the pod's controller, except for the pods of a Deployment or Rollout: they
// are controlled by a ReplicaSet, whose name consists of the workload's name and the hash of
// the pod template, so that neither object has to be read.
func Workload(pod *corev1.Pod) (kind, name string) {
	return WorkloadOf(metav1.GetControllerOfNoCopy(pod), pod.Labels)
}

// WorkloadOf is [Workload] for a pod with this controller, which may be nil, and these labels.
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
