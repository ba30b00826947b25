// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// belowAbsent is the number of nesting levels to edit below a property that is missing in the
// sample object.
const belowAbsent = 2

// Of returns the edits of a sample object that its schema suggests, in the order in which they are
// tested. The order is deterministic. Metadata and status are not edited.
func Of(schema *Schema, sample map[string]any) []Edit {
	w := &walker{sample: sample, inSample: map[string]bool{}, seen: map[string]bool{}}
	rules := rulesOf(schema)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			continue
		}
		property := schema.Properties[name]
		w.property(&property, place{path: Path{name}, name: name}, rules)
	}
	w.conflicts()
	order(w.edits, w.inSample)
	return w.edits
}

// place is a position in the traversal of a schema.
type place struct {
	path Path
	name string
	// anchor is the path of the property or of its outermost parent that is missing in the sample
	// object. whole is the generated value at this path, including the property. Both are nil if
	// the sample object contains the property.
	anchor Path
	whole  any
}

type walker struct {
	sample   map[string]any
	edits    []Edit
	inSample map[string]bool
	seen     map[string]bool
	// maps lists the paths of string maps in the sample object.
	maps []Path
}

// add adds an edit that sets the property at a place to a value.
func (w *walker) add(at place, v value) {
	e := Edit{Field: at.path.String(), Class: v.class, What: v.what, Path: at.path, Value: v.value}
	if at.whole != nil {
		whole, ok := at.path[len(at.anchor):].Set(at.whole, v.value)
		if !ok {
			return
		}
		e.Path, e.Value = at.anchor, whole
	}
	w.addEdit(e)
}

func (w *walker) addEdit(e Edit) {
	if before, there := e.Path.Get(w.sample); there && !e.Remove && reflect.DeepEqual(before, e.Value) {
		return
	}
	if !w.seen[e.String()] {
		w.seen[e.String()] = true
		w.edits = append(w.edits, e)
	}
}

// property adds the edits of a property and its subproperties. `around` lists the CEL rules of
// enclosing objects.
func (w *walker) property(s *Schema, at place, around []rule) {
	now, there := at.path.Get(w.sample)
	inside := there
	switch {
	case there:
		w.inSample[at.path.String()] = true
		w.addEdit(Edit{Field: at.path.String(), Class: Absent, What: "absent", Path: at.path, Remove: true})
		for _, v := range ofOtherTypes(now) {
			w.add(at, v)
		}
	case at.whole == nil:
		var ok bool
		if now, ok = plausible(s, at.name, deepest); !ok {
			return
		}
		at.anchor, at.whole = at.path, now
		w.add(at, value{Plausible, "added", now})
		inside = true
	default:
		now, inside = at.path[len(at.anchor):].Get(at.whole)
		if !inside {
			var ok bool
			if now, ok = plausible(s, at.name, 1); !ok {
				return
			}
		}
	}
	own := rulesOf(s)
	for _, v := range slices.Concat(valuesOf(s, at.name, now), fromRules(own, around, at.name, now)) {
		w.add(at, v)
	}
	if at.whole != nil && (!inside || len(at.path)-len(at.anchor) >= belowAbsent) {
		return
	}
	w.inside(s, at, now, slices.Concat(around, own))
}

// inside adds the edits of the items of a list property, or of the fields of an object property.
func (w *walker) inside(s *Schema, at place, now any, around []rule) {
	next := func(step any, name string) place {
		return place{path: at.path.Then(step), name: name, anchor: at.anchor, whole: at.whole}
	}
	switch now := now.(type) {
	case []any:
		// All items of a list have the same schema, so edit only the first item.
		if len(now) > 0 && s.Items != nil && s.Items.Schema != nil {
			w.property(s.Items.Schema, next(0, strings.TrimSuffix(at.name, "s")), around)
		}
	case map[string]any:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			if at.whole == nil && s.AdditionalProperties.Schema.Type == "string" {
				w.maps = append(w.maps, at.path)
			}
			for _, key := range slices.Sorted(maps.Keys(now))[:min(1, len(now))] {
				w.property(s.AdditionalProperties.Schema, next(key, key), around)
			}
			return
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			w.property(&property, next(name, name), around)
		}
		w.unknown(s, at, now, around)
	}
}

// unknown adds edits of fields that the schema preserves without describing them. The schema of
// such a field is guessed from its value.
func (w *walker) unknown(s *Schema, at place, now map[string]any, around []rule) {
	if s.XPreserveUnknownFields == nil || !*s.XPreserveUnknownFields {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, described := s.Properties[name]; !described {
			property := guessed(now[name])
			w.property(&property, place{path: at.path.Then(name), name: name, anchor: at.anchor, whole: at.whole}, around)
		}
	}
}

// guessed derives a schema from the types in a value.
func guessed(v any) Schema {
	preserve := true
	switch v := v.(type) {
	case string:
		return Schema{Type: "string"}
	case int64:
		return Schema{Type: "integer"}
	case float64:
		return Schema{Type: "number"}
	case bool:
		return Schema{Type: "boolean"}
	case []any:
		s := Schema{Type: "array"}
		if len(v) > 0 {
			item := guessed(v[0])
			s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}
		}
		return s
	}
	return Schema{Type: "object", XPreserveUnknownFields: &preserve}
}
