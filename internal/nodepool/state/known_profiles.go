// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"weak"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// The cache of pods keeps what the pods of a workload have in common only once, so that all of
// them have the very same containers. To add up what a pod requests takes longer than the rest of
// its event, so the profile of such pods is remembered by these containers.

// knownProfiles has the profiles of pods by what they share. It does not keep that in memory.
type knownProfiles map[sharedPod]*profile

// sharedPod identifies what pods have in common, and has the fields besides that decide their
// profile.
type sharedPod struct {
	containers weak.Pointer[corev1.Container]
	fate       fate
	infeasible bool
}

// minKnown is how many profiles are remembered at least, and podsPerKnown for how many pods another
// one. Workloads have many pods each; what is remembered beyond that is of containers that are
// gone.
const (
	minKnown     = 1024
	podsPerKnown = 4
)

// acquireProfile returns the profile of a pod, and counts the pod as a user of it.
func (c *Cluster) acquireProfile(pod *corev1.Pod) *profile {
	if len(pod.Spec.Containers) == 0 {
		return c.profiles.acquire(pod)
	}
	shared := sharedPod{weak.Make(&pod.Spec.Containers[0]), fateOf(pod), resourcehelper.IsPodResizeInfeasible(pod)}
	if known := c.known[shared]; known != nil && c.profiles[known.key] == known {
		known.users++
		return known
	}
	p := c.profiles.acquire(pod)
	if len(c.known) > minKnown+len(c.pods)/podsPerKnown {
		clear(c.known)
	}
	c.known[shared] = p
	return p
}
