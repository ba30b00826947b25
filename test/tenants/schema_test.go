// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// kind is a namespaced kind of Tidekeeper. Tenants may write its objects.
type kind struct {
	apiVersion, name string
	spec             *apiextensionsv1.JSONSchemaProps
}

// namespacedKinds returns the namespaced kinds that Tidekeeper's CRDs define.
func namespacedKinds(t *testing.T) (kinds []kind) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(framework.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}
		for _, version := range crd.Spec.Versions {
			properties := version.Schema.OpenAPIV3Schema.Properties
			for name := range properties {
				if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, name) {
					t.Fatalf("%s has a field %s, of which no object is made", crd.Name, name)
				}
			}
			spec := properties["spec"]
			kinds = append(kinds, kind{crd.Spec.Group + "/" + version.Name, crd.Spec.Names.Kind, &spec})
		}
	}
	return kinds
}

// field is a leaf of a kind's schema: a single value, a list or a map.
type field struct {
	path   []string
	schema *apiextensionsv1.JSONSchemaProps
}

func (f field) String() string { return strings.Join(f.path, ".") }

// fieldsOf returns all fields of a schema at the given path.
func fieldsOf(schema *apiextensionsv1.JSONSchemaProps, path ...string) (fields []field) {
	if len(schema.Properties) == 0 {
		return []field{{path, schema}}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		fields = append(fields, fieldsOf(&property, append(slices.Clone(path), name)...)...)
	}
	return fields
}

// unbounded describes the parts of a schema whose size is not limited, or returns "" if all parts
// are limited.
func unbounded(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields:
		return "its fields"
	case schema.Type == "boolean", len(schema.Enum) > 0:
		return ""
	case schema.XIntOrString, schema.Type == "string":
		if schema.MaxLength == nil {
			return "its length"
		}
		return ""
	case schema.Type == "integer":
		if schema.Minimum == nil || schema.Maximum == nil {
			return "how small or large it may be"
		}
		return ""
	case schema.Type == "array":
		if schema.MaxItems == nil || schema.Items == nil || schema.Items.Schema == nil {
			return "the number of its elements"
		}
		return unbounded(schema.Items.Schema)
	case schema.AdditionalProperties != nil:
		if schema.MaxProperties == nil || schema.AdditionalProperties.Schema == nil {
			return "the number of its keys"
		}
		return unbounded(schema.AdditionalProperties.Schema)
	case len(schema.Properties) > 0:
		for name, property := range schema.Properties {
			if what := unbounded(&property); what != "" {
				return what + " in " + name
			}
		}
		return ""
	default:
		return "its type " + schema.Type
	}
}

// TestEachFieldHasABound checks that the CRD limits the size of each field that a tenant may write.
func TestEachFieldHasABound(t *testing.T) {
	for _, k := range namespacedKinds(t) {
		fields := fieldsOf(k.spec, "spec")
		if len(fields) < 2 {
			t.Errorf("the spec of %s has %d fields", k.name, len(fields))
		}
		for _, f := range fields {
			if what := unbounded(f.schema); what != "" {
				t.Errorf("%s of %s: nothing bounds %s", f, k.name, what)
			}
		}
	}
}

// TestUnbounded checks that unbounded reports schemas without a size limit.
func TestUnbounded(t *testing.T) {
	for text, want := range map[string]string{
		`{type: string}`: "its length", `{type: string, maxLength: 3}`: "", `{type: string, enum: ["a"]}`: "",
		`{type: integer, minimum: 0}`: "how small or large it may be", `{type: integer, minimum: 0, maximum: 1}`: "",
		`{type: array, items: {type: boolean}}`:                                  "the number of its elements",
		`{type: array, maxItems: 2, items: {type: string}}`:                      "its length",
		`{type: array, maxItems: 2, items: {properties: {a: {type: string}}}}`:   "its length in a",
		`{type: object, additionalProperties: {type: boolean}}`:                  "the number of its keys",
		`{type: object, maxProperties: 1, additionalProperties: {type: string}}`: "its length",
		`{type: object, x-kubernetes-preserve-unknown-fields: true}`:             "its fields",
		`{type: object}`: "its type object",
		`{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`:   "its length",
		`{type: object, maxProperties: 1, additionalProperties: {type: boolean}}`:        "",
		`{type: array, maxItems: 2, items: {properties: {a: {type: boolean}}}}`:          "",
		`{x-kubernetes-int-or-string: true, maxLength: 4, anyOf: [{type: integer}, {}]}`: "",
	} {
		schema := &apiextensionsv1.JSONSchemaProps{}
		if err := yaml.Unmarshal([]byte(text), schema); err != nil {
			t.Fatal(err)
		}
		if got := unbounded(schema); got != want {
			t.Errorf("%s: %q is not bounded, want %q", text, got, want)
		}
	}
}

// shapes lists generators of strings that the CRDs' validation rules may require. A string has at
// most the given length, and `n` makes strings distinct. If a field's rule accepts none of these
// shapes, another shape must be added.
var shapes = []func(length, n int) string{
	func(length, n int) string { return fill(fmt.Sprintf("x%02d", n), "x", length) },
	func(length, n int) string { return fill(fmt.Sprintf("X%02d", n), "x", length) },
	// The shape of an API version: a group, a slash and a version.
	func(length, n int) string {
		group := fill(fmt.Sprintf("x%02d", n), "x", min(length*4/5, 253))
		return group + "/" + fill("v1", "x", min(length-len(group)-1, 63))
	},
	// A cron expression with a long list of minutes.
	func(length, _ int) string {
		const others = " * * * *"
		return fill(fill("*", ",*", length-len(others))+others, " ", length)
	},
	func(int, int) string { return "America/Argentina/ComodRivadavia" },
	func(int, int) string { return "100%" },
}

// fill appends the string `with` to `text` as often as the length allows.
func fill(text, with string, length int) string {
	return text + strings.Repeat(with, max(0, length-len(text))/len(with))
}

// texts returns a string of each shape that fits the length, the longest first.
func texts(length, n int) (all []any) {
	for _, shape := range shapes {
		if text := shape(length, n); len(text) <= length {
			all = append(all, text)
		}
	}
	slices.SortStableFunc(all, func(a, b any) int { return cmp.Compare(len(b.(string)), len(a.(string))) })
	return all
}

// extremes returns the extreme values to test a field with. Each extreme is a list of alternatives,
// of which the first accepted one is used. `n` makes list elements distinct.
func extremes(schema *apiextensionsv1.JSONSchemaProps, n int) (extremes [][]any) {
	switch {
	case schema.Type == "boolean":
		return [][]any{{true}, {false}}
	case len(schema.Enum) > 0:
		for _, value := range schema.Enum {
			extremes = append(extremes, []any{decoded(value.Raw)})
		}
		return extremes
	case schema.XIntOrString:
		return [][]any{texts(int(*schema.MaxLength), n), {int64(2147483647)}}
	case schema.Type == "string":
		return [][]any{texts(int(*schema.MaxLength), n)}
	case schema.Type == "integer":
		return [][]any{{int64(*schema.Maximum)}, {int64(*schema.Minimum)}}
	case schema.Type == "array":
		return lists(schema)
	case schema.AdditionalProperties != nil:
		return fullMaps(schema)
	default:
		return objects(schema, n)
	}
}

func decoded(raw []byte) (value any) {
	if err := json.Unmarshal(raw, &value); err != nil {
		panic(err)
	}
	return value
}

// lists returns lists with the maximum number of elements, one for each extreme of the elements.
func lists(schema *apiextensionsv1.JSONSchemaProps) (all [][]any) {
	for e, alternatives := range extremes(schema.Items.Schema, 0) {
		var some []any
		for a := range alternatives {
			list := []any{}
			for n := range *schema.MaxItems {
				list = append(list, extremes(schema.Items.Schema, int(n))[e][a])
			}
			some = append(some, list)
		}
		all = append(all, some)
	}
	return all
}

// fullMaps returns maps with the maximum number of keys, one for each extreme of the values.
func fullMaps(schema *apiextensionsv1.JSONSchemaProps) (all [][]any) {
	for e, alternatives := range extremes(schema.AdditionalProperties.Schema, 0) {
		var some []any
		for a := range alternatives {
			keys := map[string]any{}
			for n := range *schema.MaxProperties {
				keys[fmt.Sprintf("x%05d", n)] = extremes(schema.AdditionalProperties.Schema, int(n))[e][a]
			}
			some = append(some, keys)
		}
		all = append(all, some)
	}
	return all
}

// objects returns objects in which all fields have their first extreme, in all combinations of the
// alternatives.
func objects(schema *apiextensionsv1.JSONSchemaProps, n int) [][]any {
	combined := []any{map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		var more []any
		for _, with := range combined {
			for _, value := range extremes(&property, n)[0] {
				o := maps.Clone(with.(map[string]any))
				o[name] = value
				more = append(more, o)
			}
		}
		combined = more
	}
	return [][]any{combined}
}
