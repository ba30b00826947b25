// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// handedOn reports whether an operator has copied the annotation of the kit to an object that the
// kit did not annotate, or into an object, such as into the template of its pods.
func handedOn(objects []observe.Version, annotated map[string]bool) bool {
	for i := range objects {
		v := &objects[i]
		own := "metadata.annotations." + observe.TouchedAnnotation
		for path := range state.Flatten(v.Object.Object, observe.OfEachVersion) {
			if strings.HasSuffix(path, "annotations."+observe.TouchedAnnotation) && (path != own || !annotated[v.Key()]) {
				return true
			}
		}
	}
	return false
}

// templateHash is the hash in the names of objects made of a template, such as a
// ReplicaSet, in the alphabet in which Kubernetes writes hashes.
var templateHash = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`)

const anyHash = "-HASH"

// withoutRevisions returns a state without differences that follow from a revision of a template: where
// an operator hands the annotation of the kit on to a template, there is a new one of all that is
// made of it. Its content and the number of objects still count.
func withoutRevisions(s observe.State) observe.State {
	all := observe.State{}
	for key, group := range s {
		resource := state.ResourceOf(key)
		for _, f := range group {
			if isHistory(resource, f) {
				continue
			}
			fields := observe.Fields{}
			for path, value := range f {
				if strings.HasSuffix(path, "labels.pod-template-hash") || strings.HasSuffix(path, "labels.controller-revision-hash") || strings.HasSuffix(path, "Revision") {
					value = anyHash
				}
				fields[templateHash.ReplaceAllString(path, anyHash)] = templateHash.ReplaceAllString(value, anyHash)
			}
			at := byOwner(key, fields)
			all[at] = append(all[at], fields)
		}
	}
	return all
}

// byOwner is the key of a pod or a ReplicaSet that a template was made for: by its owner, so that
// it is the same for each revision.
func byOwner(key string, f observe.Fields) string {
	resource := state.ResourceOf(key)
	if resource != "replicasets.apps" && resource != "pods" {
		return key
	}
	for _, path := range slices.Sorted(maps.Keys(f)) {
		match := controllerName.FindStringSubmatch(path)
		if match == nil || f[path] != "true" || resource == "pods" && f["metadata.ownerReferences["+match[1]+"].kind"] != "ReplicaSet" {
			continue
		}
		_, name, _ := strings.Cut(key, " ")
		namespace, _, _ := strings.Cut(name, "/")
		return observe.NameKey(resource, namespace, "* of "+match[1])
	}
	return key
}

var controllerName = regexp.MustCompile(`^metadata\.ownerReferences\[([^]]*)]\.controller$`)
