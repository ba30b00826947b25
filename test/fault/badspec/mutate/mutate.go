// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutate derives wrong and hostile edits of a custom resource's spec from its
// CRD schema: for each field, in each way that its type and bounds suggest. No field
// can be forgotten, and a new one is covered as soon as it is in the schema.
package mutate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Placeholder in examples is replaced by the name of the object, so that many objects
// can be edited at the same time without interfering with each other.
const Placeholder = "the-object"

// Mutation is one edit of one field of a valid spec.
type Mutation struct {
	// Field is the path of the field, with [] for an item of a list, {} for a value of a
	// map and {key} for a key of a map.
	Field string
	// What describes the edit.
	What string

	spec any
}

func (m Mutation) String() string { return m.Field + ": " + m.What }

// Patch returns the JSON patch that sets the spec of the named object to the mutated
// one.
func (m Mutation) Patch(name string) []byte { return patchTo(m.spec, name) }

// PatchTo returns the JSON patch that sets the spec of the named object to that of an
// example.
func PatchTo(example map[string]any, name string) []byte { return patchTo(example, name) }

func patchTo(spec any, name string) []byte {
	operation := map[string]any{"op": "replace", "path": "/spec", "value": spec}
	if spec == absent {
		operation = map[string]any{"op": "remove", "path": "/spec"}
	}
	text, err := json.Marshal([]any{operation})
	if err != nil {
		panic("what was made of JSON is JSON: " + err.Error())
	}
	return []byte(strings.ReplaceAll(string(text), Placeholder, name))
}

// Mutations returns all edits of a spec with that schema, in a stable order. Each is
// based on the first example that has the field. A field of the schema that is in none
// of the examples is an error.
func Mutations(schema *apiextensionsv1.JSONSchemaProps, examples ...map[string]any) ([]Mutation, error) {
	m := &maker{maps: mapsOf(schema, nil)}
	for _, example := range examples {
		m.examples = append(m.examples, copied(example))
	}
	m.walk(schema, nil, false)
	if len(m.missing) > 0 {
		return nil, fmt.Errorf("no example has the fields %q", m.missing)
	}
	return m.mutations, nil
}

// Fields returns how many different fields the mutations edit.
func Fields(mutations []Mutation) int {
	fields := map[string]bool{}
	for _, m := range mutations {
		fields[m.Field] = true
	}
	return len(fields)
}

type maker struct {
	examples []any
	// maps are the paths of all maps of the schema.
	maps []path

	mutations []Mutation
	missing   []string
}

// walk adds the mutations of a field and of everything inside it. A property is a field
// with a name, so it can occur twice.
func (m *maker) walk(schema *apiextensionsv1.JSONSchemaProps, at path, property bool) {
	base, current, ok := m.exampleWith(at)
	if !ok {
		m.missing = append(m.missing, at.String())
		return
	}
	add := func(what string, value any) {
		m.mutations = append(m.mutations, Mutation{Field: at.String(), What: what, spec: at.set(base, value)})
	}

	add("absent", absent)
	add("null", nil)
	for _, wrong := range []struct {
		what, is string
		value    any
	}{
		{"a text", "string", "text"}, {"a number", "integer", 7}, {"a truth value", "boolean", true},
		{"a list", "array", []any{"text"}}, {"an object", "object", map[string]any{"text": "text"}},
	} {
		if wrong.is != schema.Type {
			add(wrong.what, wrong.value)
		}
	}
	if property {
		parent, last := at[:len(at)-1], at[len(at)-1].(string)
		object, _ := parent.get(base)
		m.mutations = append(m.mutations, Mutation{Field: at.String(), What: "twice", spec: parent.set(base, twice{object.(map[string]any), last})})
	}
	for _, other := range m.examples {
		if value, ok := at.get(other); ok && !reflect.DeepEqual(value, current) {
			add("as in another example", value)
		}
	}
	for _, v := range valuesOf(schema, current) {
		add(v.what, v.value)
	}

	switch {
	case schema.Type == "array":
		m.walk(schema.Items.Schema, at.then(0), false)
	case schema.AdditionalProperties != nil:
		object := current.(map[string]any)
		first := slices.Sorted(maps.Keys(object))[0]
		for _, v := range keys() {
			field := at.String() + "{key}"
			m.mutations = append(m.mutations, Mutation{Field: field, What: v.what, spec: at.then(v.value.(string)).set(base, object[first])})
		}
		m.conflicts(base, at)
		m.walk(schema.AdditionalProperties.Schema, at.then(entry{first}), false)
	default:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			m.walk(&property, at.then(name), true)
		}
	}
}

// conflicts adds the keys of the other maps to a map, with different values.
func (m *maker) conflicts(base any, at path) {
	for _, from := range m.maps {
		_, other, ok := m.exampleWith(from)
		if !ok || from.String() == at.String() {
			continue
		}
		spec := base
		for key := range other.(map[string]any) {
			spec = at.then(key).set(spec, "conflict")
		}
		m.mutations = append(m.mutations, Mutation{Field: at.String(), What: "conflicts with " + from.String(), spec: spec})
	}
}

// exampleWith returns the first example that has the field, and its value there.
func (m *maker) exampleWith(at path) (example, value any, ok bool) {
	for _, example := range m.examples {
		if value, ok := at.get(example); ok {
			return example, value, true
		}
	}
	return nil, nil, false
}

func mapsOf(schema *apiextensionsv1.JSONSchemaProps, at path) []path {
	var found []path
	if schema.AdditionalProperties != nil {
		found = append(found, at)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		found = append(found, mapsOf(&property, at.then(name))...)
	}
	return found
}
