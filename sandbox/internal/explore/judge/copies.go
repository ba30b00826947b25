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

// handedOn reports whether the operator has copied TouchedAnnotation to another object or field,
// such as a pod template. explore sets this annotation on the objects whose keys are in
// `annotated`.
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

// revisionFields lists the ends of the paths of fields whose values are names of revisions. The labels
// are also in the selector of a ReplicaSet.
var revisionFields = []string{".pod-template-hash", ".controller-revision-hash", "Revision"}

// withoutRevisions returns a copy of a state in which all revisions of a pod template look the
// same. It is used if the operator copies TouchedAnnotation to a template, because all objects
// created from the template are then replaced. Their contents and numbers are still compared.
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
				if slices.ContainsFunc(revisionFields, func(end string) bool { return strings.HasSuffix(path, end) }) {
					value = observe.AnyHash
				}
				fields[observe.TemplateHash.ReplaceAllString(path, observe.AnyHash)] = observe.TemplateHash.ReplaceAllString(value, observe.AnyHash)
			}
			at := byOwner(key, fields)
			all[at] = append(all[at], fields)
		}
	}
	return all
}

// byOwner returns a key that is the same for all revisions of a pod template. For a pod or
// ReplicaSet, the key contains the owner's name instead of the object's name. byOwner returns the
// keys of other resources unchanged.
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
