// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Bounds of the cached fields of a pod. Tenants control these fields. Without bounds, a pod of 1.5
// MB could take several times as much memory here, because an element of a Go type may be a hundred
// times larger than its encoding. A value above its bound is replaced by a value that is less
// favorable to the pod, so that the pod seems to be affected by more changes than it really is.
const (
	// longestPlacement is the maximum total size in bytes of a pod's node selector and required
	// node affinity. mostPlacement is the maximum total number of terms, expressions and values in
	// them.
	longestPlacement = 4096
	mostPlacement    = 1024
	// longestTolerations is the maximum total size of a pod's tolerations in bytes. mostTolerations
	// is the maximum number of tolerations.
	longestTolerations = 4096
	mostTolerations    = 64
	// mostContainers is the maximum number of a pod's containers that are kept individually.
	// mostRequests is the maximum total number of resource requests of these containers. If either
	// is exceeded, only the sum of the requests is kept.
	mostContainers = 32
	mostRequests   = 128
	// mostResources is the maximum number of resource names in the sum of a pod's requests.
	mostResources = 64
	// longestReason is the maximum length, in bytes, of the reason of a pod's condition.
	longestReason = 64
)

// Maximum lengths of an owner reference's fields. Only a tenant that writes an owner reference by
// hand can exceed them.
const (
	longestVersion = 253 + len("/") + 63
	longestKind    = 63
	longestName    = 253
	longestUID     = 128
)

// boundTolerations returns the given tolerations, or nil if they exceed the bounds. A pod without
// tolerations seems to be affected by every taint.
func boundTolerations(tolerations []corev1.Toleration) []corev1.Toleration {
	if len(tolerations) > mostTolerations {
		return nil
	}
	size := 0
	for i := range tolerations {
		size += tolerations[i].Size()
	}
	if size > longestTolerations {
		return nil
	}
	return tolerations
}

// placementSize returns the total size in bytes of a node selector and a required node affinity,
// and their total number of elements.
func placementSize(selector map[string]string, required *corev1.NodeSelector) (bytes, elements int) {
	for key, value := range selector {
		bytes += len(key) + len(value)
	}
	elements = len(selector)
	if required == nil {
		return bytes, elements
	}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		for _, expressions := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
			for j := range expressions {
				elements += 1 + len(expressions[j].Values)
			}
		}
		elements++
	}
	return bytes + required.Size(), elements
}

// nowhere returns an affinity that no node matches.
func nowhere() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
}

// boundRequests replaces the containers of a pod with too many containers or requests by a single
// container with the sum of the requests, as [resources.RequestList] computes it for node pools. If
// the sum has too many resources, Kubernetes' own resources are kept first: another resource counts
// only if a node offers it, and no node offers that many. A pod with dropped resources gets an
// affinity that no node matches, so that it does not seem to fit on other nodes.
func boundRequests(pod *corev1.Pod) {
	if !tooManyRequests(pod) {
		return
	}
	requests := resources.RequestList(pod)
	if names := slices.SortedFunc(maps.Keys(requests), ownFirst); len(names) > mostResources {
		for _, name := range names[mostResources:] {
			delete(requests, name)
		}
		if !pods.IsOfDaemonSet(pod) {
			pod.Spec.NodeSelector, pod.Spec.Affinity = nil, nowhere()
		}
	}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
	pod.Spec.InitContainers, pod.Spec.Overhead, pod.Spec.Resources = nil, nil, nil
	pod.Status.AllocatedResources, pod.Status.Resources, pod.Status.NodeAllocatableResourceClaimStatuses = nil, nil, nil
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, nil
}

// ownFirst compares resource names. It orders Kubernetes' own resources, whose names have no
// domain, before all others.
func ownFirst(a, b corev1.ResourceName) int {
	inDomain := func(name corev1.ResourceName) int { return min(1, strings.Count(string(name), "/")) }
	return cmp.Or(inDomain(a)-inDomain(b), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func tooManyRequests(pod *corev1.Pod) bool {
	spec, status := &pod.Spec, &pod.Status
	if max(len(spec.Containers)+len(spec.InitContainers), len(status.ContainerStatuses)+len(status.InitContainerStatuses),
		len(status.NodeAllocatableResourceClaimStatuses)) > mostContainers {
		return true
	}
	requests := len(spec.Overhead) + len(status.AllocatedResources)
	for _, r := range []*corev1.ResourceRequirements{spec.Resources, status.Resources} {
		if r != nil {
			requests += len(r.Requests)
		}
	}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			requests += len(containers[i].Resources.Requests)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range statuses {
			requests += len(statuses[i].AllocatedResources)
			if r := statuses[i].Resources; r != nil {
				requests += len(r.Requests)
			}
		}
	}
	for i := range status.NodeAllocatableResourceClaimStatuses {
		claim := &status.NodeAllocatableResourceClaimStatuses[i]
		requests += len(claim.Containers) + len(claim.Mapping) + len(claim.Overhead)
	}
	return requests > mostRequests
}
