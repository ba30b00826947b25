// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"weak"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// knownProfiles caches the profile of pods by their shared containers: the manager's cache
// keeps one copy of the containers of all pods of a workload, and adding up the requests of a
// pod takes longer than the rest of its event. Weak pointers let the containers be
// garbage-collected.
type knownProfiles map[sharedPod]*Profile

// sharedPod identifies the shared part of a pod, with the other fields that its profile depends
// on.
type sharedPod struct {
	containers weak.Pointer[corev1.Container]
	fate       fate
	infeasible bool
}

// At most minKnown profiles are cached, plus a profile for every podsPerKnown pods, since
// workloads have many pods each. If there are more, most of them belong to deleted containers.
const (
	minKnown     = 1024
	podsPerKnown = 4
)

// acquire returns the profile of a pod, and counts the pod as a user of it.
func (n *Nodes) acquire(pod *corev1.Pod) *Profile {
	if len(pod.Spec.Containers) == 0 {
		return n.profiles.acquire(pod)
	}
	shared := sharedPod{weak.Make(&pod.Spec.Containers[0]), fateOf(pod), resourcehelper.IsPodResizeInfeasible(pod)}
	if known := n.known[shared]; known != nil && n.profiles[known.key] == known {
		known.users++
		return known
	}
	p := n.profiles.acquire(pod)
	if len(n.known) > minKnown+len(n.pods)/podsPerKnown {
		clear(n.known)
	}
	n.known[shared] = p
	return p
}
