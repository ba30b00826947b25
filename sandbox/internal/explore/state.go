// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"regexp"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// State is all objects at a moment, and Fields are the leaves of one.
type (
	State  = state.State
	Fields = state.Fields
)

// anonymizer replaces what differs between two equal runs.
type anonymizer struct {
	// stable are the objects, by nameKey, whose names all undisturbed runs have, and the
	// beginnings of generated names; nil: all.
	stable map[string]bool
	// unjudged are the fields that the workload says no run is judged by.
	unjudged []Unjudged
}

// ignored are paths, or beginnings of them, that no run is judged by, in all objects.
var ignored = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.managedFields", "metadata.selfLink",
	"metadata.generateName", "metadata.name", "status.observedGeneration",
	"metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.ownerReferences[].uid",
}

// ignoredOf are more of them, of one resource.
var ignoredOf = map[string][]string{
	"nodes":                  {"status", "metadata.annotations.node.alpha.kubernetes.io/ttl", "metadata.annotations.volumes.kubernetes.io/controller-managed-attach-detach", "spec.podCIDR"},
	"pods":                   {"spec.nodeName", "status", "spec.volumes", "spec.containers[].volumeMounts", "spec.initContainers[].volumeMounts"},
	"persistentvolumeclaims": {"spec.volumeName", "metadata.annotations"},
	"persistentvolumes":      {"spec", "metadata"},
	"services":               {"spec.clusterIP", "spec.clusterIPs", "spec.ports[].nodePort", "spec.healthCheckNodePort"},
	"namespaces":             {"status.conditions"},
}

// leftOut reports whether an object is not part of a state: those by which leaders are
// elected, and those of the control plane.
func leftOut(v *Version, locks map[string]bool) bool {
	namespace := v.Object.GetNamespace()
	return namespace == "kube-system" || namespace == "kube-public" || namespace == "kube-node-lease" || locks[v.key()]
}

// state describes objects.
func (a anonymizer) state(objects []Version, locks map[string]bool) State {
	s := State{}
	for i := range objects {
		v := &objects[i]
		if leftOut(v, locks) {
			continue
		}
		key := a.key(v)
		s[key] = append(s[key], a.fields(v))
	}
	return s
}

// key names an object, or all those of a kind that belong to the same owner, if the name
// differs from run to run.
func (a anonymizer) key(v *Version) string {
	o := v.Object
	key := v.generalKey()
	if a.stable == nil || a.stable[key] {
		return key
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			return nameKey(v.Resource, o.GetNamespace(), "* of "+owner.Kind+" "+a.ownerName(owner.Name))
		}
	}
	if v.Resource == "persistentvolumes" {
		return v.Resource + " *"
	}
	return key
}

// generalKey names an object, or all those whose names were generated from the same text, or have
// a UID in the same place, as volumes that are provided for claims.
func (v *Version) generalKey() string {
	if prefix := v.Object.GetGenerateName(); prefix != "" && strings.HasPrefix(v.Object.GetName(), prefix) {
		return nameKey(v.Resource, v.Object.GetNamespace(), prefix+"*")
	}
	return nameKey(v.Resource, v.Object.GetNamespace(), state.WithoutUIDs(v.Object.GetName()))
}

// ownerName leaves out the hash at the end of the names of ReplicaSets, Jobs and the like,
// that an owner with another template has.
func (a anonymizer) ownerName(name string) string {
	for key := range a.stable {
		if strings.HasSuffix(key, "/"+name) {
			return name
		}
	}
	return "*"
}

// counter is an annotation with the number of a rollout, which one that is repeated adds to.
var counter = regexp.MustCompile(`^metadata\.annotations\..*/revision(-history)?$`)

// fields flattens an object.
func (a anonymizer) fields(v *Version) Fields {
	paths := slices.Concat(ignored, ignoredOf[v.Resource])
	for _, u := range a.unjudged {
		if resourceIs(v.Resource, u.Resource) {
			paths = append(paths, u.Path)
		}
	}
	f := state.Flatten(v.Object.Object, func(path string) bool {
		// An operator may hand the annotations of its custom resource on to all that it makes.
		return strings.HasSuffix(path, "annotations."+touchedAnnotation) || counter.MatchString(path) || slices.ContainsFunc(paths, func(p string) bool {
			rest, is := strings.CutPrefix(path, p)
			return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
	if v.Object.GetDeletionTimestamp() != nil {
		f["metadata.deletionTimestamp"] = "set"
	}
	return f
}

// diff returns in what a state differs from the one that it should be, a line each.
func diff(want, got State, mask *state.Mask) []string {
	return state.Lines(state.Compare(want, got, mask, state.Rules{}))
}
