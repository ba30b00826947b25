// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "slices"

// LockKeys returns the keys of objects used for leader election: Leases that the requests write,
// and objects with LeaderAnnotation.
func LockKeys(requests []Request, versions []Version) map[string]bool {
	keys := map[string]bool{}
	for i := range requests {
		if r := &requests[i]; slices.Contains(Election, r.Resource) && slices.Contains(WriteVerbs, r.Verb) {
			keys[NameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range versions {
		if _, is := versions[i].Object.GetAnnotations()[LeaderAnnotation]; is {
			keys[versions[i].Key()] = true
		}
	}
	return keys
}

// LeaderAnnotation marks a ConfigMap or Endpoints object that an older client uses for leader
// election.
const LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
