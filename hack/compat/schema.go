// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// breach is a change that may break users. name is the name of the changed interface, and change
// describes the change.
type breach struct{ name, change string }

type jsonSchema = apiextensionsv1.JSONSchemaProps

// compareSchemas returns the changes by which the API server would reject, interpret or default an
// object differently, for objects that the old schema accepts.
func compareSchemas(name string, before, after *jsonSchema) []breach {
	var found []breach
	add := func(format string, args ...any) {
		found = append(found, breach{name, fmt.Sprintf(format, args...)})
	}
	for _, c := range []struct{ what, before, after string }{
		{"type", before.Type, after.Type},
		{"format", before.Format, after.Format},
		{"default", raw(before.Default), raw(after.Default)},
	} {
		if c.before != c.after {
			add("the %s was %s, and is %s", c.what, orNone(c.before), orNone(c.after))
		}
	}
	narrowed(before, after, add)
	for _, field := range after.Required {
		if !slices.Contains(before.Required, field) {
			found = append(found, breach{name + "." + field, "is required now"})
		}
	}
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) && !isAboutANewField(rule.Rule, before) {
			add("there is a new rule: %s", cmp.Or(rule.Message, rule.Rule))
		}
	}
	if !reflect.DeepEqual(otherParts(before), otherParts(after)) {
		add("the schema differs in a way that this gate cannot judge")
	}
	return append(found, compareInner(name, before, after)...)
}

// newField matches a rule that only objects with a certain field can violate. A conditional
// expression is not matched, as it binds less tightly.
var newField = regexp.MustCompile(`^!has\(self\.(\w+)\) \|\| [^?]*$`)

// isAboutANewField reports whether only objects with a field that the old schema does not have can
// violate the rule.
func isAboutANewField(rule string, before *jsonSchema) bool {
	match := newField.FindStringSubmatch(rule)
	if match == nil {
		return false
	}
	_, existed := before.Properties[match[1]]
	return !existed
}

// narrowed calls add for each value or range that is no longer accepted.
func narrowed(before, after *jsonSchema, add func(string, ...any)) {
	if len(after.Enum) > 0 && len(before.Enum) == 0 {
		add("only some values are accepted now")
	}
	for _, value := range before.Enum {
		if len(after.Enum) > 0 && !slices.ContainsFunc(after.Enum, func(v apiextensionsv1.JSON) bool { return raw(&v) == raw(&value) }) {
			add("the value %s is gone", raw(&value))
		}
	}
	if after.Pattern != "" && after.Pattern != before.Pattern {
		add("the pattern was %s, and is %s", orNone(before.Pattern), after.Pattern)
	}
	least(add, "minimum", before.Minimum, after.Minimum)
	least(add, "minimum length", before.MinLength, after.MinLength)
	least(add, "minimum of items", before.MinItems, after.MinItems)
	least(add, "minimum of entries", before.MinProperties, after.MinProperties)
	most(add, "maximum", before.Maximum, after.Maximum)
	most(add, "maximum length", before.MaxLength, after.MaxLength)
	most(add, "maximum of items", before.MaxItems, after.MaxItems)
	most(add, "maximum of entries", before.MaxProperties, after.MaxProperties)
	if before.Nullable && !after.Nullable {
		add("null is no longer accepted")
	}
	if !before.ExclusiveMinimum && after.ExclusiveMinimum || !before.ExclusiveMaximum && after.ExclusiveMaximum {
		add("the bound itself is no longer accepted")
	}
}

func least[T cmp.Ordered](add func(string, ...any), what string, before, after *T) {
	if after != nil && (before == nil || *after > *before) {
		add("the %s was %s, and is %v", what, bound(before), *after)
	}
}

func most[T cmp.Ordered](add func(string, ...any), what string, before, after *T) {
	if after != nil && (before == nil || *after < *before) {
		add("the %s was %s, and is %v", what, bound(before), *after)
	}
}

func bound[T any](value *T) string {
	if value == nil {
		return "none"
	}
	return fmt.Sprint(*value)
}

// compareInner compares the schemas of an object's fields, a list's items and a map's values.
func compareInner(name string, before, after *jsonSchema) []breach {
	var found []breach
	for _, field := range slices.Sorted(maps.Keys(before.Properties)) {
		was := before.Properties[field]
		is, ok := after.Properties[field]
		if !ok {
			found = append(found, breach{name + "." + field, "is gone"})
			continue
		}
		found = append(found, compareSchemas(name+"."+field, &was, &is)...)
	}
	if before.Items != nil && after.Items != nil && before.Items.Schema != nil && after.Items.Schema != nil {
		found = append(found, compareSchemas(name+"[]", before.Items.Schema, after.Items.Schema)...)
	}
	if b, a := before.AdditionalProperties, after.AdditionalProperties; b != nil && a != nil && b.Schema != nil && a.Schema != nil {
		found = append(found, compareSchemas(name+"{}", b.Schema, a.Schema)...)
	}
	return found
}

// otherParts returns a schema without descriptions and without the parts that are compared
// individually.
func otherParts(s *jsonSchema) *jsonSchema {
	o := s.DeepCopy()
	o.Type, o.Format, o.Default, o.Required, o.XValidations, o.Enum, o.Pattern = "", "", nil, nil, nil, nil, ""
	o.Minimum, o.MinLength, o.MinItems, o.MinProperties = nil, nil, nil, nil
	o.Maximum, o.MaxLength, o.MaxItems, o.MaxProperties = nil, nil, nil, nil
	o.Nullable, o.ExclusiveMinimum, o.ExclusiveMaximum = false, false, false
	o.Description, o.Title, o.Example, o.ExternalDocs, o.Properties = "", "", nil, nil, nil
	// Inner schemas are compared separately. Here, only their presence counts.
	if o.Items != nil && o.Items.Schema != nil {
		o.Items.Schema = &jsonSchema{}
	}
	if o.AdditionalProperties != nil && o.AdditionalProperties.Schema != nil {
		o.AdditionalProperties.Schema = &jsonSchema{}
	}
	return o
}

func raw(value *apiextensionsv1.JSON) string {
	if value == nil {
		return ""
	}
	return string(value.Raw)
}

func orNone(text string) string { return cmp.Or(text, "none") }
