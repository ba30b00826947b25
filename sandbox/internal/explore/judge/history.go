// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// comparableStates returns the baseline's state `want` and the run's state `got` without
// differences that are a legitimate effect of the fault.
func comparableStates(f *faults.Fault, want, got observe.State) (observe.State, observe.State) {
	if f.Effects().HidesStates {
		want, got = withoutHistory(want), withoutHistory(got)
		// A PersistentVolumeClaim outlives its owner. If the fault hides an intermediate state from
		// the operator, the owner and its PersistentVolumeClaims may never be created. Ignore such
		// PersistentVolumeClaims here. Wrong deletions are detected by the number of deleted
		// objects (OtherCounts).
		maps.DeleteFunc(want, func(key string, _ []observe.Fields) bool {
			return strings.HasPrefix(key, "persistentvolumeclaims ") && len(got[key]) == 0
		})
	}
	if f.Effects().OtherClientWrites {
		want, got = withoutDigests(want), withoutDigests(got)
	}
	return want, got
}

// each returns a new state, in which `change` has replaced each object of the state `s`.
func each(s observe.State, change func(observe.Fields) observe.Fields) observe.State {
	state := make(observe.State, len(s))
	for key, group := range s {
		for _, f := range group {
			state[key] = append(state[key], change(f))
		}
	}
	return state
}

// withoutHistory returns a state without the traces that a controller leaves only if it sees
// intermediate states. These traces are revisions of a template, earlier ReplicaSets without pods,
// and PersistentVolumes. They also include conditions that are False, because a condition that was
// never True may be missing, and the observedGeneration of conditions.
func withoutHistory(s observe.State) observe.State {
	state := make(observe.State, len(s))
	for key, group := range s {
		resource, _, _ := strings.Cut(key, " ")
		group = slices.DeleteFunc(slices.Clone(group), func(f observe.Fields) bool { return isHistory(resource, f) })
		if len(group) > 0 {
			state[key] = group
		}
	}
	return each(state, func(f observe.Fields) observe.Fields {
		fields := maps.Clone(f)
		maps.DeleteFunc(fields, func(path, _ string) bool {
			match := ofCondition.FindStringSubmatch(path)
			return match != nil && (f[match[1]+".status"] == "False" || path == match[1]+".observedGeneration")
		})
		return fields
	})
}

// ofCondition matches a field of a status condition.
var ofCondition = regexp.MustCompile(`^(status\.conditions\[[^]]*])\.`)

// withoutDigests returns a state in which all digests (hashes) in annotations and labels are equal.
// An operator may compute digests of objects that another client has annotated.
func withoutDigests(s observe.State) observe.State {
	return each(s, func(f observe.Fields) observe.Fields {
		fields := maps.Clone(f)
		for path, value := range fields {
			if digest.MatchString(value) && (strings.Contains(path, "annotations.") || strings.Contains(path, "labels.")) {
				fields[path] = "DIGEST"
			}
		}
		return fields
	})
}

var digest = regexp.MustCompile(`^([a-z0-9]+[:-])?([0-9a-f]{8,}|[0-9]{8,})$`)

func isHistory(resource string, f observe.Fields) bool {
	switch resource {
	case "controllerrevisions.apps", "persistentvolumes":
		return true
	case "replicasets.apps":
		return f["spec.replicas"] == "0" && slices.ContainsFunc(slices.Collect(maps.Keys(f)), func(path string) bool {
			return strings.HasPrefix(path, "metadata.ownerReferences[") && strings.HasSuffix(path, "].controller")
		})
	}
	return false
}
