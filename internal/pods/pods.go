// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods answers the questions about a pod that several packages ask, each
// in one way. It is pure: it reads nothing but the pod.
package pods

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// IsTerminal reports whether the pod has ended: its containers do not run and are
// not started again, so that it uses nothing of its node.
func IsTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsActive reports whether the pod has neither ended nor been deleted. A workload
// controller counts such a pod as a replica; it replaces any other.
func IsActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !IsTerminal(pod)
}

// Condition returns the condition of the given type, or nil. If the pod has several,
// it returns the one that changed last, whatever their order.
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

// ContainerStatus returns the status of the named container, the first if there are
// several, or nil.
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
// if nothing controls the pod.
func WorkloadName(pod *corev1.Pod) string {
	kind, name := Workload(pod)
	if kind == "" {
		return "Pod/" + pod.Name
	}
	return kind + "/" + name
}

// IsReplaced reports whether the pod has a controller that creates another one when it is gone.
// A static pod is its kubelet's.
func IsReplaced(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind != "Node"
}

// Workload returns the kind and the name of the workload that the pod belongs to,
// both empty if nothing controls the pod.
//
// That is the pod's controller, except for the pods of a Deployment and the like: they
// are controlled by a ReplicaSet, which is named after its workload and the hash of the
// pod template, so that neither has to be read.
func Workload(pod *corev1.Pod) (kind, name string) {
	return WorkloadOf(metav1.GetControllerOfNoCopy(pod), pod.Labels)
}

// WorkloadOf returns the same for a pod with these labels that an owner controls; nil if none does.
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
