// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Draft is what a first workload is written from: the actions of users on one sample object.
type Draft struct {
	// Install lists the paths of the manifests to install, and Sample is the path of the file with
	// the sample object. All are relative to the directory of the workload.
	Install []string
	Sample  string
	// Objects lists the objects of the sample file. The first of a kind that Definitions define is
	// the sample, or else the first.
	Objects []*unstructured.Unstructured
	// Definitions lists the installed CustomResourceDefinitions.
	Definitions []*unstructured.Unstructured
}

// mostEdits is the maximum number of fields that a drafted workload edits, beside the replicas.
const mostEdits = 3

// edit is a change of a field to a value.
type edit struct {
	path  []string
	value any
}

// Text returns a workload in which users create the sample object, edit it and delete it. The edits
// change the number of replicas up and down, and a few other fields that the sample has: a number by
// one, a bool, or an enumerated value. Fields with validation rules are left out, because such rules
// may forbid the edit.
func (d *Draft) Text() (string, error) {
	if len(d.Objects) == 0 {
		return "", errors.New("it has no object")
	}
	sample := d.Objects[max(0, slices.IndexFunc(d.Objects, func(o *unstructured.Unstructured) bool { return d.definitionOf(o) != nil }))]
	definition := d.definitionOf(sample)
	name := sample.GetName()
	if name == "" {
		return "", fmt.Errorf("the %s in it has no metadata.name, by which the steps after its creation name it", sample.GetKind())
	}
	target := targetOf(sample, definition)
	at := fmt.Sprintf("resource: %s, ", target.Resource)
	if target.Namespace != "" {
		at += fmt.Sprintf("namespace: %s, ", quoted(target.Namespace))
	}
	at += "name: " + quoted(name)
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("# What users do with a %s. After each step, explore waits until nothing happens any more.", sample.GetKind())
	if len(d.Install) > 0 {
		var paths []string
		for _, path := range d.Install {
			paths = append(paths, quoted(path))
		}
		line("install: [%s]", strings.Join(paths, ", "))
	}
	line("steps:")
	line("- name: a %s is created", sample.GetKind())
	line("  apply: %s", quoted(d.Sample))
	line("# What users wait for, so that it is a finding if it never comes:")
	line("# - wait: {%s, for: 'object.status.ready'}", at)
	for _, e := range edits(sample, definition) {
		value, err := json.Marshal(e.value)
		if err != nil {
			return "", err
		}
		line("- name: %s becomes %s", strings.Join(e.path, "."), value)
		line("  patch: {%s, merge: {%s: %s%s}}", at, strings.Join(e.path, ": {"), value, strings.Repeat("}", len(e.path)-1))
	}
	line("- name: it is deleted")
	line("  delete: {%s}", at)
	line("- wait: {%s, for: %s}", at, Deleted)
	if _, err := Parse([]byte(text.String())); err != nil {
		return "", fmt.Errorf("the drafted workload is not valid: %w", err)
	}
	return text.String(), nil
}

// quoted returns a text as a YAML string that is safe in a list. A name such as 1 or true must be
// quoted, too.
func quoted(text string) string {
	var read any
	if err := yaml.Unmarshal([]byte(text), &read); err != nil || read != text || strings.ContainsAny(text, " ,:#'\"{}[]&*!|>%@`") {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return text
}

// definitionOf returns the definition of an object's kind; nil if it is not among d.Definitions.
func (d *Draft) definitionOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	for _, definition := range d.Definitions {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		if (schema.GroupKind{Group: group, Kind: kind}) == o.GroupVersionKind().GroupKind() {
			return definition
		}
	}
	return nil
}

// targetOf returns the resource, namespace and name of the sample. Without a definition, the
// resource is guessed from the kind, and the object is taken for one in a namespace.
func targetOf(sample, definition *unstructured.Unstructured) Target {
	kinds, _ := meta.UnsafeGuessKindToResource(sample.GroupVersionKind())
	resource, scope := kinds.GroupResource(), ""
	if definition != nil {
		resource.Resource, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "plural")
		scope, _, _ = unstructured.NestedString(definition.Object, "spec", "scope")
	}
	t := Target{Resource: resource.String(), Name: sample.GetName()}
	if scope != "Cluster" {
		t.Namespace = cmp.Or(sample.GetNamespace(), metav1.NamespaceDefault)
	}
	return t
}

// edits returns the changes that users make to the sample.
func edits(sample, definition *unstructured.Unstructured) []edit {
	version := versionOf(definition, sample.GroupVersionKind().Version)
	fields := mapIn(version, "schema", "openAPIV3Schema", "properties")
	replicas := []string{"spec", "replicas"}
	scaled := false
	if path, is, _ := unstructured.NestedString(version, "subresources", "scale", "specReplicasPath"); is {
		replicas, scaled = strings.Split(strings.TrimPrefix(path, "."), "."), true
	}
	count, has, _ := unstructured.NestedInt64(sample.Object, replicas...)
	all := []edit{}
	if has || scaled {
		count = max(count, 1)
		all = append(all, edit{replicas, count + 2}, edit{replicas, count})
	}
	limit := len(all) + mostEdits
	spec, _, _ := unstructured.NestedMap(sample.Object, "spec")
	for _, e := range fieldEdits([]string{"spec"}, spec, mapIn(fields, "spec")) {
		if len(all) < limit && !slices.Equal(e.path, replicas) {
			all = append(all, e)
		}
	}
	return all
}

// versionOf returns the version of a definition with the given name; nil if there is none.
func versionOf(definition *unstructured.Unstructured, name string) map[string]any {
	if definition == nil {
		return nil
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, is := v.(map[string]any); is && version["name"] == name {
			return version
		}
	}
	return nil
}

// fieldEdits returns an edit of each field of the values that the schema permits to change.
func fieldEdits(path []string, values, of map[string]any) (all []edit) {
	if of["x-kubernetes-validations"] != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, at := mapIn(of, "properties", name), append(slices.Clone(path), name)
		if field == nil || field["x-kubernetes-validations"] != nil {
			continue
		}
		switch value := values[name].(type) {
		case map[string]any:
			all = append(all, fieldEdits(at, value, field)...)
		case bool:
			all = append(all, edit{at, !value})
		case int64:
			if most, limited := number(field["maximum"]); field["multipleOf"] == nil && (!limited || float64(value+1) <= most) && field["enum"] == nil {
				all = append(all, edit{at, value + 1})
			}
		case string:
			if i := slices.IndexFunc(list(field["enum"]), func(other any) bool { return other != value }); i >= 0 {
				all = append(all, edit{at, list(field["enum"])[i]})
			}
		}
	}
	return all
}

// mapIn returns the object at a path; nil if there is none.
func mapIn(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

// number returns a number of a decoded manifest.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
