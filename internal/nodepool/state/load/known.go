// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"weak"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// knownProfiles caches the profiles (requests and scheduling constraints) of pods, because
// computing a pod's requests takes longer than all other work for a pod event. A key contains a
// pointer to the pod's containers, of which the manager's cache keeps a single copy for all pods of
// a workload. The pointer is weak, so that unused containers can be garbage-collected.
type knownProfiles map[sharedPod]*Profile

// sharedPod is the key of knownProfiles: the containers that pods share, and the other fields that
// determine a pod's profile.
type sharedPod struct {
	containers weak.Pointer[corev1.Container]
	fate       fate
	infeasible bool
}

// The cache knownProfiles is limited to minKnown profiles plus another profile for every
// podsPerKnown pods, since a workload usually has many pods. A larger cache is emptied, because
// most of its profiles belong to containers that no pod uses any more.
const (
	minKnown     = 1024
	podsPerKnown = 4
)

// acquire returns the profile of a pod, and increments the profile's number of users.
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
