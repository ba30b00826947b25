// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// State is the state of all objects at a point in time, without parts that differ between otherwise
// equal runs.
type State = state.State

// Fields maps the path of each leaf in an object to its value.
type Fields = state.Fields

// Names replaces parts of objects that differ between otherwise equal runs, such as generated
// names, and removes fields that are not compared.
type Names struct {
	// Stable is the set of keys and general keys that occur in all baseline runs. If it is nil, all
	// keys are considered stable.
	Stable map[string]bool
	// Unjudged lists the fields that the workload excludes from the verdict.
	Unjudged []workload.Unjudged
}

// TouchedAnnotation is the annotation that explore sets when it acts as another client.
const TouchedAnnotation = "sandbox.tidekeeper.dev/touched"

// Touches reports whether a version sets TouchedAnnotation on an object that existed before.
func (v *Version) Touches() bool {
	now := v.Object.GetAnnotations()[TouchedAnnotation]
	return v.Old != nil && now != "" && now != v.Old.GetAnnotations()[TouchedAnnotation]
}

// FallsBack reports whether a version is of a pod that was ready before and is not any more.
func (v *Version) FallsBack() bool {
	ready := func(object *unstructured.Unstructured) bool {
		return Names{}.Fields(&Version{Object: object})["status.conditions[Ready].status"] == "True"
	}
	return v.Resource == "pods" && v.Old != nil && ready(v.Old) && !ready(v.Object)
}

// ignored lists paths that are not compared in any object, including all paths below them.
var ignored = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.managedFields", "metadata.selfLink",
	"metadata.generateName", "metadata.name",
	"metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.ownerReferences[].uid",
}

// ignoredOf lists additional ignored paths by resource.
var ignoredOf = map[string][]string{
	"nodes":                           {"metadata.annotations.node.alpha.kubernetes.io/ttl", "metadata.annotations.volumes.kubernetes.io/controller-managed-attach-detach", "spec.podCIDR"},
	"pods":                            {"spec.nodeName", "spec.volumes", "spec.containers[].volumeMounts", "spec.initContainers[].volumeMounts"},
	"persistentvolumeclaims":          {"spec.volumeName", "metadata.annotations"},
	"persistentvolumes":               {"metadata", "spec.claimRef", "spec.hostPath", "spec.csi", "spec.local", "spec.nodeAffinity"},
	"services":                        {"spec.clusterIP", "spec.clusterIPs", "spec.ports[].nodePort", "spec.healthCheckNodePort"},
	"namespaces":                      {"status.conditions"},
	"endpoints":                       {lastChange, "subsets[].addresses[].nodeName", "subsets[].addresses[].targetRef.name"},
	"endpointslices.discovery.k8s.io": {lastChange, "endpoints[].nodeName", "endpoints[].zone", "endpoints[].hints", "endpoints[].hostname", "endpoints[].targetRef.name"},
}

// lastChange is the path of the annotation that holds the last change time of a Service's pods.
const lastChange = "metadata.annotations.endpoints.kubernetes.io/last-change-trigger-time"

// ofKubelets lists the resources whose status kubelets write. In these, only status fields written
// by other clients are compared.
var ofKubelets = []string{"nodes", "pods"}

// systemNamespaces lists the namespaces of the control plane.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// OfControlPlane is the reason, as shown to users, for excluding an object in a system namespace.
const OfControlPlane = "the control plane's own"

// LeftOut reports whether an object is excluded from State, and therefore not compared. `locks` is
// the set of keys of objects used for leader election.
func LeftOut(v *Version, locks map[string]bool) bool { return WhyLeftOut(v, locks) != "" }

// WhyLeftOut explains to users why an object is excluded from State: it is used for leader
// election, so that its key is in `locks`, or it belongs to the control plane. The result is empty
// for other objects.
func WhyLeftOut(v *Version, locks map[string]bool) string {
	switch {
	case locks[v.Key()]:
		return "the operator elects its leader by them"
	case v.Resource == "endpoints" && byControlPlane(v.Object):
		return "the control plane makes them of the pods, and slices as well"
	case v.Resource != "endpoints" && v.Prepared && slices.Contains(systemNamespaces, v.Object.GetNamespace()) && byControlPlane(v.Object):
		return OfControlPlane
	}
	return ""
}

// State returns the normalized state of objects. `locks` is the set of keys of objects used for
// leader election, which are excluded.
func (a Names) State(objects []Version, locks map[string]bool) State {
	s := State{}
	for i := range objects {
		v := &objects[i]
		if LeftOut(v, locks) {
			continue
		}
		key := a.Key(v)
		s[key] = append(s[key], a.Fields(v))
	}
	return s
}

// Key returns an object's key. If the name differs from run to run, all objects of a resource share
// a key if they have the same controller, or the same owner and no other owner.
func (a Names) Key(v *Version) string {
	o := v.Object
	key := v.GeneralKey()
	if a.Stable == nil || a.Stable[key] {
		return key
	}
	owners := o.GetOwnerReferences()
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller || len(owners) == 1 {
			return NameKey(v.Resource, o.GetNamespace(), "* of "+owner.Kind+" "+a.ownerName(owner.Name))
		}
	}
	if v.Resource == "persistentvolumes" {
		return v.Resource + " *"
	}
	return key
}

// GeneralKey returns an object's key without the generated part of its name. If generateName is
// set, * replaces the part after it; otherwise the word UID replaces any UID, as in the names of
// provisioned volumes.
func (v *Version) GeneralKey() string {
	if prefix := v.Object.GetGenerateName(); prefix != "" && strings.HasPrefix(v.Object.GetName(), prefix) {
		return NameKey(v.Resource, v.Object.GetNamespace(), prefix+"*")
	}
	return NameKey(v.Resource, v.Object.GetNamespace(), state.WithoutUIDs(v.Object.GetName()))
}

// ownerName returns an owner's name, or * if the name differs from run to run, such as a ReplicaSet
// name that ends with a template hash.
func (a Names) ownerName(name string) string {
	for key := range a.Stable {
		if strings.HasSuffix(key, "/"+name) {
			return name
		}
	}
	return "*"
}

// counter matches the paths of annotations that hold a revision number, which grows with each
// rollout.
var counter = regexp.MustCompile(`^metadata\.annotations\..*/revision(-history)?$`)

// Fields returns the path and value of each leaf in an object, except for fields that are not
// compared.
func (a Names) Fields(v *Version) Fields {
	paths := slices.Concat(ignored, ignoredOf[v.Resource])
	for _, u := range a.Unjudged {
		if ResourceIs(v.Resource, u.Resource) {
			paths = append(paths, u.Path)
		}
	}
	object := v.Object.Object
	if v.Resource == "endpointslices.discovery.k8s.io" {
		object = sortedEndpoints(v.Object)
	}
	f := state.Flatten(object, func(path string) bool {
		// Ignore TouchedAnnotation in all objects: an operator may copy the annotations of its
		// custom resource to all objects that it creates.
		return strings.HasSuffix(path, "annotations."+TouchedAnnotation) || counter.MatchString(path) || slices.ContainsFunc(paths, func(p string) bool {
			rest, is := strings.CutPrefix(path, p)
			return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
	if slices.Contains(ofKubelets, v.Resource) {
		others := writtenByOthers(v.Object, "status")
		maps.DeleteFunc(f, func(path, _ string) bool {
			return state.Within("status", path) && !slices.ContainsFunc(others, func(written string) bool { return state.Within(written, path) })
		})
	}
	a.withoutOwnerNames(f, v.Object)
	observed(f, v.Object.GetGeneration())
	if v.Object.GetDeletionTimestamp() != nil {
		f["metadata.deletionTimestamp"] = "set"
	}
	return f
}

// TemplateHash matches the hash in the name of an object created from a template, such as a
// ReplicaSet. Kubernetes uses a special alphabet for such hashes.
var TemplateHash = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`)

// AnyHash replaces a match of [TemplateHash] in names that are compared.
const AnyHash = "-HASH"

// generated matches the part of a name that the API server generates.
var generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// General returns a text without the generated parts of the names in it, which differ from run to
// run.
func General(text string) string {
	return generated.ReplaceAllString(TemplateHash.ReplaceAllString(text, AnyHash), "-*")
}

// withoutOwnerNames replaces the generated part of the name of an object's only owner, in the owner
// reference, if the name differs from run to run.
func (a Names) withoutOwnerNames(f Fields, o *unstructured.Unstructured) {
	owners := o.GetOwnerReferences()
	if a.Stable == nil || len(owners) != 1 || a.ownerName(owners[0].Name) != "*" {
		return
	}
	name := General(owners[0].Name)
	before, after := "metadata.ownerReferences["+owners[0].Name+"]", "metadata.ownerReferences["+name+"]"
	for _, path := range slices.Collect(maps.Keys(f)) {
		if rest, of := strings.CutPrefix(path, before); of {
			value := f[path]
			delete(f, path)
			if rest == ".name" {
				value = name
			}
			f[after+rest] = value
		}
	}
}

// sortedEndpoints returns an EndpointSlice with its endpoints sorted by condition. Endpoints have
// no names, and their order differs from run to run.
func sortedEndpoints(slice *unstructured.Unstructured) map[string]any {
	object := maps.Clone(slice.Object)
	endpoints, _ := object["endpoints"].([]any)
	endpoints = slices.Clone(endpoints)
	slices.SortStableFunc(endpoints, func(a, b any) int { return strings.Compare(conditionsOf(a), conditionsOf(b)) })
	object["endpoints"] = endpoints
	return object
}

// conditionsOf returns the conditions and the deprecated topology of an endpoint as a string. The
// same endpoint has the same string in each run.
func conditionsOf(endpoint any) string {
	fields, _ := endpoint.(map[string]any)
	return fmt.Sprint(fields["conditions"], fields["deprecatedTopology"])
}

// observed replaces each observedGeneration in the status with a phrase that states whether it
// equals the object's current generation. The number itself is not comparable, because it depends
// on the writes of other clients.
func observed(f Fields, generation int64) {
	for path, value := range f {
		if !strings.HasPrefix(path, "status.") || !strings.HasSuffix(path, ".observedGeneration") {
			continue
		}
		switch seen, err := strconv.ParseInt(value, 10, 64); {
		case err != nil || generation == 0:
		case seen == generation:
			f[path] = "the present one"
		default:
			f[path] = "another one"
		}
	}
}

// WhyIgnored explains to users why a field is not compared. `what` names the group of fields that
// the field belongs to, and `why` is the reason.
func (a Names) WhyIgnored(resource, path string) (what, why string) {
	for _, u := range a.Unjudged {
		if ResourceIs(resource, u.Resource) && state.Within(u.Path, path) {
			return resource + " " + u.Path, "the workload says so (unjudged)"
		}
	}
	switch {
	case strings.HasSuffix(path, "annotations."+TouchedAnnotation):
		return "annotations " + TouchedAnnotation, "explore wrote them"
	case slices.Contains(ofKubelets, resource) && state.Within("status", path):
		return "the status of " + resource, "what kubelets and the control plane write of it"
	case slices.ContainsFunc(ignored, func(p string) bool { return state.Within(p, path) }):
		return "metadata of all objects", "UIDs, times, versions, generations and names are others in each run"
	}
	return "fields of " + resource, "the control plane sets them, or they are others in each run"
}

// Whole is the path that Edits returns for a created or deleted object. It stands for all fields.
const Whole = "*"

// Edits returns the changed paths outside of metadata and status. It returns Whole if the object is
// created or deleted, or if the object's deletion begins.
func (v *Version) Edits() []string {
	if v.Old == nil || v.Type != watch.Modified || (v.Old.GetDeletionTimestamp() == nil) != (v.Object.GetDeletionTimestamp() == nil) {
		return []string{Whole}
	}
	skip := func(path string) bool { return path == "metadata" || path == "status" }
	return state.Flatten(v.Old.Object, skip).Differ(state.Flatten(v.Object.Object, skip))
}
