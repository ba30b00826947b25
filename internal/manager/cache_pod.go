// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// keptPodFields returns the fields that transformPod reads. All other fields of a pod are not
// decoded, so a field that transformPod newly reads must be added here. A test checks that no field
// can be removed.
func keptPodFields() podcache.KeptPodFields {
	fields := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
		"metadata.creationTimestamp", "metadata.deletionTimestamp",
		"metadata.annotations[" + tidekeeperv1.RestartedAtAnnotation + "]",
		"metadata.ownerReferences.apiVersion", "metadata.ownerReferences.kind", "metadata.ownerReferences.name",
		"metadata.ownerReferences.uid", "metadata.ownerReferences.controller",
		"spec.nodeName", "spec.tolerations", "spec.overhead", "spec.resources.requests", "spec.nodeSelector",
		"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
		"status.phase", "status.startTime", "status.allocatedResources", "status.resources.requests",
		"status.nodeAllocatableResourceClaimStatuses",
		"status.conditions.type", "status.conditions.status", "status.conditions.lastTransitionTime",
		"status.conditions.reason", "status.conditions.message",
		"status.containerStatuses.restartCount",
	}
	for _, label := range pods.TemplateHashLabels() {
		fields = append(fields, "metadata.labels["+label+"]")
	}
	for _, of := range []string{"spec.containers", "spec.initContainers"} {
		fields = append(fields, of+".name", of+".restartPolicy", of+".resources.requests")
	}
	for _, of := range []string{"status.containerStatuses", "status.initContainerStatuses"} {
		fields = append(fields, of+".name", of+".allocatedResources", of+".resources.requests")
	}
	for _, of := range []string{"status.containerStatuses.state", "status.containerStatuses.lastState"} {
		fields = append(fields, of+".running", of+".terminated.startedAt")
	}
	return podcache.KeptPodFields{
		Fields: fields, Summary: podtimeline.Summarize,
		Conditions: []corev1.PodConditionType{corev1.PodResizePending, podtimeline.SummaryCondition},
	}
}

// transformPod keeps the pod fields that controllers need, within the bounds of
// cache_pod_bounds.go: the node, the placement constraints and tolerations, the controlling owner,
// the requests, and a summary of the startup. Within these bounds, PodRequests of
// k8s.io/component-helpers returns the same result for the transformed pod as for the complete pod,
// with any options.
func transformPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of pods", in)
	}
	// The transformed pod is a new object, so that fields of a later API version are dropped, too.
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            slimMap(pod.Labels, keptPodLabels),
			OwnerReferences:   slimOwners(pod.OwnerReferences),
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Tolerations:    boundTolerations(pod.Spec.Tolerations),
			Containers:     slimContainers(pod.Spec.Containers),
			InitContainers: slimContainers(pod.Spec.InitContainers),
			Overhead:       pod.Spec.Overhead,
		},
		Status: corev1.PodStatus{
			Phase:                                pod.Status.Phase,
			AllocatedResources:                   pod.Status.AllocatedResources,
			NodeAllocatableResourceClaimStatuses: pod.Status.NodeAllocatableResourceClaimStatuses,
		},
	}
	slim.Spec.NodeSelector, slim.Spec.Affinity = slimPlacement(pod)
	if pod.Spec.Resources != nil {
		slim.Spec.Resources = &corev1.ResourceRequirements{Requests: pod.Spec.Resources.Requests}
	}
	if pod.Status.Resources != nil {
		slim.Status.Resources = &corev1.ResourceRequirements{Requests: pod.Status.Resources.Requests}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodResizePending {
			// The reason of the first PodResizePending condition shows whether the resize is
			// infeasible.
			slim.Status.Conditions = []corev1.PodCondition{{
				Type: condition.Type, Status: condition.Status, Reason: text.Cut(condition.Reason, longestReason),
			}}
			break
		}
	}
	// A single condition summarizes the pod's startup and replaces many fields.
	if summary := podtimeline.Summarize(pod); summary != nil {
		slim.Status.Conditions = append(slim.Status.Conditions, *summary)
	}
	// A container's status matters only during a resize, when its resources differ from the spec.
	// In nearly all other cases, keeping it would only double the memory. After an infeasible
	// resize, the resources in the spec do not count, so all statuses are kept.
	if resourcehelper.IsPodResizeInfeasible(pod) {
		slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses, nil)
		slim.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses, nil)
	} else {
		slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses, pod.Spec.Containers)
		slim.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses, pod.Spec.InitContainers)
	}
	boundRequests(slim)
	return slim, nil
}

// slimOwners keeps only the owner that controls the pod, which takes about 190 bytes per pod. The
// owner is kept even if no running controller reads it, because the cached fields do not depend on
// the running controllers.
func slimOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for _, o := range owners {
		if o.Controller != nil && *o.Controller {
			return []metav1.OwnerReference{{
				APIVersion: text.Cut(o.APIVersion, longestVersion), Kind: text.Cut(o.Kind, longestKind), Name: text.Cut(o.Name, longestName),
				UID: types.UID(text.Cut(string(o.UID), longestUID)), Controller: new(true),
			}}
		}
	}
	return nil
}

// slimPlacement keeps the node selector and the required node affinity, which determine whether a
// pod could run on another node. It drops them for pods of a DaemonSet, because such pods never
// move and each has a different affinity. Tenants could fill the memory with long selectors, so a
// selector above its bound is replaced by an affinity that no node matches; without an affinity,
// the pod would seem to fit on every node.
func slimPlacement(pod *corev1.Pod) (map[string]string, *corev1.Affinity) {
	if pods.IsOfDaemonSet(pod) {
		return nil, nil
	}
	var required *corev1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	size, elements := placementSize(pod.Spec.NodeSelector, required)
	switch {
	case size > longestPlacement || elements > mostPlacement:
		return nil, nowhere()
	case required != nil:
		return pod.Spec.NodeSelector, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	default:
		return pod.Spec.NodeSelector, nil
	}
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	slim := make([]corev1.Container, len(containers))
	for i, c := range containers {
		slim[i] = corev1.Container{
			Name:          c.Name,
			Resources:     corev1.ResourceRequirements{Requests: c.Resources.Requests},
			RestartPolicy: c.RestartPolicy,
		}
	}
	return slim
}

// slimStatuses returns the container statuses, reduced to their resources. It omits a status whose
// resources are the same as those of the container with the same name in spec.
func slimStatuses(statuses []corev1.ContainerStatus, spec []corev1.Container) []corev1.ContainerStatus {
	var slim []corev1.ContainerStatus
	for _, s := range statuses {
		if repeatsSpec(s, spec) {
			continue
		}
		kept := corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources}
		if s.Resources != nil {
			kept.Resources = &corev1.ResourceRequirements{Requests: s.Resources.Requests}
		}
		slim = append(slim, kept)
	}
	return slim
}

func repeatsSpec(status corev1.ContainerStatus, spec []corev1.Container) bool {
	for _, c := range spec {
		if c.Name != status.Name {
			continue
		}
		return (status.AllocatedResources == nil || sameResources(status.AllocatedResources, c.Resources.Requests)) &&
			(status.Resources == nil || status.Resources.Requests == nil || sameResources(status.Resources.Requests, c.Resources.Requests))
	}
	return false
}

func sameResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
