// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"weak"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// knownProfiles remembers the profile of pods by the containers that they share: the cache keeps
// one copy of the containers of all pods of a workload, and to add up what a pod requests takes
// longer than the rest of its event. The containers are not kept in memory by it.
type knownProfiles map[sharedPod]*Profile

// sharedPod identifies the shared part of a pod, with the other fields that its profile depends on.
type sharedPod struct {
	containers weak.Pointer[corev1.Container]
	fate       fate
	infeasible bool
}

// The limit of remembered profiles: minKnown, and one more for every podsPerKnown pods, as
// workloads have many pods each. Profiles beyond it are of containers that are gone.
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
