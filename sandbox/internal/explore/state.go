// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// State is all objects at a moment: the fields as flat paths, without what no
// run is judged by. Objects whose names differ from run to run are one entry together.
type State map[string][]Fields

// Fields are the leaves of an object, by path.
type Fields map[string]string

// anonymizer replaces what differs between two equal runs.
type anonymizer struct {
	// stable are the objects, by nameKey, whose names all undisturbed runs have, and the
	// beginnings of generated names; nil: all.
	stable map[string]bool
	// unjudged are the fields that the workload says no run is judged by.
	unjudged []Unjudged
}

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)
	uids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses  = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
)

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
	return nameKey(v.Resource, v.Object.GetNamespace(), uids.ReplaceAllString(v.Object.GetName(), "UID"))
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
	f := Fields{}
	paths := slices.Concat(ignored, ignoredOf[v.Resource])
	for _, u := range a.unjudged {
		if resourceIs(v.Resource, u.Resource) {
			paths = append(paths, u.Path)
		}
	}
	flatten(f, "", v.Object.Object, func(path string) bool {
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

// flatten adds the leaves of a value. Items of lists are named by their key, so that their
// order does not matter, where they have one of the usual ones.
func flatten(f Fields, path string, value any, skip func(string) bool) {
	if skip(anyIndex(path)) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		seen := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			key := anonymous(name)
			if seen[key]++; seen[key] > 1 {
				key += "#" + strconv.Itoa(seen[key])
			}
			flatten(f, strings.TrimPrefix(path+"."+key, "."), value[name], skip)
		}
		// Many operators write an empty map where there was none, or the other way round, which
		// only means something in what is wanted.
		if len(value) == 0 && path != "" && !strings.HasPrefix(path, "status.") && !strings.HasPrefix(path, "metadata.") {
			f[path] = "{}"
		}
	case []any:
		seen := map[string]int{}
		for _, item := range value {
			key := itemKey(item)
			seen[key]++
			if seen[key] > 1 || key == "" {
				key += "#" + strconv.Itoa(seen[key])
			}
			flatten(f, path+"["+key+"]", item, skip)
		}
	default:
		f[path] = anonymous(fmt.Sprint(value))
	}
}

// itemKey returns what names an item of a list.
func itemKey(item any) string {
	fields, is := item.(map[string]any)
	if !is {
		return ""
	}
	for _, key := range []string{"type", "name", "key", "ip", "containerPort", "kind"} {
		if value, has := fields[key]; has {
			if key == "kind" {
				return fmt.Sprint(value) + " " + fmt.Sprint(fields["name"])
			}
			return anonymous(fmt.Sprint(value))
		}
	}
	return ""
}

var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// anyIndex replaces the names of items by nothing.
func anyIndex(path string) string { return indexes.ReplaceAllString(path, "[]") }

// anonymousTime stands for a time.
const anonymousTime = "TIME"

func anonymous(text string) string {
	text = timestamps.ReplaceAllString(text, anonymousTime)
	text = uids.ReplaceAllString(text, "UID")
	return addresses.ReplaceAllString(text, "ADDRESS")
}

// Mask holds what differs between undisturbed runs, and does not count.
type Mask struct {
	// Paths are a resource and a path.
	Paths map[string]bool
	// Objects are those that not all undisturbed runs have.
	Objects map[string]bool
	// Numbers are entries of which there are not always as many.
	Numbers map[string]bool
}

func newMask() *Mask {
	return &Mask{Paths: map[string]bool{}, Objects: map[string]bool{}, Numbers: map[string]bool{}}
}

// learn adds what differs between two undisturbed runs at the same moment.
func (m *Mask) learn(a, b State) {
	for key := range maps.Keys(merged(a, b)) {
		switch {
		case len(a[key]) == 0 || len(b[key]) == 0:
			m.Objects[key] = true
			continue
		case len(a[key]) != len(b[key]):
			m.Numbers[key] = true
		}
		resource, _, _ := strings.Cut(key, " ")
		for path := range valuesOf(a[key], b[key]) {
			if values(a[key], path) != values(b[key], path) {
				m.Paths[resource+" "+anyIndex(path)] = true
			}
		}
	}
}

// add adds what another mask holds.
func (m *Mask) add(other *Mask) {
	maps.Copy(m.Paths, other.Paths)
	maps.Copy(m.Objects, other.Objects)
	maps.Copy(m.Numbers, other.Numbers)
}

func merged(a, b State) State {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// valuesOf returns all paths of some objects.
func valuesOf(groups ...[]Fields) map[string]bool {
	paths := map[string]bool{}
	for _, group := range groups {
		for _, fields := range group {
			for path := range fields {
				paths[path] = true
			}
		}
	}
	return paths
}

// values returns the values of a path in all objects of an entry, as one text.
func values(group []Fields, path string) string {
	var all []string
	for _, fields := range group {
		if value, has := fields[path]; has {
			all = append(all, value)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " | ")
}

// diff returns what differs from what is wanted, a line each, without what is masked.
func (m *Mask) diff(want, got State) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(merged(want, got))) {
		w, g := want[key], got[key]
		switch {
		case m.Objects[key]:
			continue
		case len(w) == 0:
			lines = append(lines, fmt.Sprintf("%s: there %s that should not be there", key, number(len(g))))
			continue
		case len(g) == 0:
			lines = append(lines, key+": it is missing")
			continue
		case len(w) != len(g) && !m.Numbers[key]:
			lines = append(lines, fmt.Sprintf("%s: there are %d, not %d", key, len(g), len(w)))
		}
		resource, _, _ := strings.Cut(key, " ")
		wanted, there := valuesOf(w), valuesOf(g)
		told := map[string]bool{}
		for _, path := range slices.Sorted(maps.Keys(valuesOf(w, g))) {
			wv, gv := values(w, path), values(g, path)
			if wv == gv || m.Paths[resource+" "+anyIndex(path)] {
				continue
			}
			line := fmt.Sprintf("%s is %s, not %s", path, shown(gv), shown(wv))
			if item := onlyIn(wanted, there, path); item != "" {
				line = item + " is missing"
			} else if item := onlyIn(there, wanted, path); item != "" {
				line = item + " is there, and should not be"
			}
			if !told[line] {
				told[line] = true
				lines = append(lines, key+": "+line)
			}
		}
	}
	return lines
}

// onlyIn returns the item of a list with several fields, of which one has this path, that is in
// the first of two objects and not in the second; or nothing.
func onlyIn(one, other map[string]bool, path string) string {
	for i, c := range path {
		if c != ']' {
			continue
		}
		item := path[:i+1]
		fields := func(all map[string]bool) (count int) {
			for path := range all {
				if strings.HasPrefix(path, item) {
					count++
				}
			}
			return count
		}
		if fields(one) > 1 && fields(other) == 0 {
			return item
		}
	}
	return ""
}

func number(n int) string {
	if n == 1 {
		return "is one"
	}
	return fmt.Sprintf("are %d", n)
}

// shown bounds a value.
func shown(value string) string {
	const longest = 120
	switch {
	case value == "":
		return "missing"
	case len(value) > longest:
		return fmt.Sprintf("%.*s…", longest, value)
	}
	return value
}
