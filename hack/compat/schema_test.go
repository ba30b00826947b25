// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

const released = `
metadata: {name: pools.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Pool, listKind: PoolList, plural: pools, singular: pool, shortNames: [po], categories: [all]}
  versions:
  - name: v1
    served: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Status, jsonPath: .status, type: string}]
    selectableFields: [{jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size:
            type: integer
            format: int32
            default: 3
            minimum: 1
            maximum: 10
          mode: {type: string, enum: [A, B], nullable: true}
          name:
            type: string
            maxLength: 20
            x-kubernetes-validations: [{rule: self != "x", message: not x}]
          keys:
            type: array
            maxItems: 4
            items: {type: object, required: [key], properties: {key: {type: string}, value: {type: string}}}
            x-kubernetes-list-type: set
          labels:
            type: object
            additionalProperties: {type: string, maxLength: 5}
`

// change is an edit of the released CRD, with the breaking changes that the gate should find.
type change struct {
	name, from, to string
	breaks         []string
}

var changes = []change{
	{"nothing", "group", "group", nil},
	{"a description", "type: integer", "type: integer\n            description: new", nil},
	{"a new field", "labels:\n", "more: {type: string, pattern: x}\n          labels:\n", nil},
	{"a new version", "  - name: v1\n", "  - name: v2\n    served: true\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v1\n", nil},
	{"wider bounds", "minimum: 1\n            maximum: 10", "minimum: 0", nil},
	{"another value", "[A, B]", "[A, B, C]", nil},
	{"any value", "enum: [A, B], ", "", nil},
	{"longer values", "maxLength: 5", "maxLength: 6", nil},
	{"a rule less", `[{rule: self != "x", message: not x}]`, "[]", nil},
	{"a rule about a new field", "value: {type: string}}}", `value: {type: string}, more: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.more) || self.key == 'a'"}]}`, nil},
	{"a required field less", "required: [key], ", "", nil},

	{"a field is gone", "          mode: {type: string, enum: [A, B], nullable: true}\n", "", []string{"field Pool.mode: is gone"}},
	{"a field is renamed", "value: {type", "val: {type", []string{"field Pool.keys[].value: is gone"}},
	{"a field is required", "required: [key]", "required: [key, value]", []string{"field Pool.keys[].value: is required now"}},
	{"another type", "type: integer", "type: string", []string{"field Pool.size: the type was integer, and is string"}},
	{"another format", "format: int32", "format: int64", []string{"field Pool.size: the format was int32, and is int64"}},
	{"another default", "default: 3", "default: 4", []string{"field Pool.size: the default was 3, and is 4"}},
	{"no default", "            default: 3\n", "", []string{"field Pool.size: the default was 3, and is none"}},
	{"a first default", "maxLength: 20", "maxLength: 20\n            default: a", []string{`field Pool.name: the default was none, and is "a"`}},
	{"a higher minimum", "minimum: 1", "minimum: 2", []string{"field Pool.size: the minimum was 1, and is 2"}},
	{"a lower maximum", "maximum: 10", "maximum: 9", []string{"field Pool.size: the maximum was 10, and is 9"}},
	{"a bound that is excluded", "minimum: 1", "minimum: 1\n            exclusiveMinimum: true", []string{"field Pool.size: the bound itself is no longer accepted"}},
	{"shorter texts", "maxLength: 20", "maxLength: 19", []string{"field Pool.name: the maximum length was 20, and is 19"}},
	{"no empty text", "maxLength: 20", "maxLength: 20\n            minLength: 1", []string{"field Pool.name: the minimum length was none, and is 1"}},
	{"fewer items", "maxItems: 4", "maxItems: 3", []string{"field Pool.keys: the maximum of items was 4, and is 3"}},
	{"shorter values", "maxLength: 5", "maxLength: 4", []string{"field Pool.labels{}: the maximum length was 5, and is 4"}},
	{"a pattern", "maxLength: 20", "maxLength: 20\n            pattern: x", []string{"field Pool.name: the pattern was none, and is x"}},
	{"a value is gone", "[A, B]", "[A]", []string{`field Pool.mode: the value "B" is gone`}},
	{"values are listed", "value: {type: string}", "value: {type: string, enum: [a]}", []string{"field Pool.keys[].value: only some values are accepted now"}},
	{"no null", ", nullable: true", "", []string{"field Pool.mode: null is no longer accepted"}},
	{"another rule", `self != "x"`, `self != "y"`, []string{"field Pool.name: there is a new rule: not x"}},
	{"a rule about an old field", "value: {type: string}}}", `value: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.value) || self.key == 'a'", message: only a}]}`, []string{"field Pool.keys[]: there is a new rule: only a"}},
	{"a rule that is not only about a new field", "value: {type: string}}}", `value: {type: string}, more: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.more) || true ? self.key == 'a' : true", message: only a}]}`, []string{"field Pool.keys[]: there is a new rule: only a"}},
	{"another kind of list", "list-type: set", "list-type: atomic", []string{"field Pool.keys: the schema differs in a way that this gate cannot judge"}},

	{"a version is gone", "name: v1", "name: v2", []string{"kind Pool: the version v1 is no longer served"}},
	{"a version is not served", "served: true", "served: false", []string{"kind Pool: the version v1 is no longer served"}},
	{"another scope", "scope: Cluster", "scope: Namespaced", []string{"kind Pool: the scope was Cluster, and is Namespaced"}},
	{"another plural", "plural: pools", "plural: ponds", []string{"kind Pool: the plural was pools, and is ponds"}},
	{"no short name", "shortNames: [po], ", "", []string{"kind Pool: the short name po is gone"}},
	{"no category", ", categories: [all]", "", []string{"kind Pool: the category all is gone"}},
	{"no status", "subresources: {status: {}}", "subresources: {}", []string{"kind Pool: the subresources differ"}},
	{"no column", "{name: Status", "{name: State", []string{"kind Pool: the column Status is gone"}},
	{"another column", "jsonPath: .status,", "jsonPath: .state,", []string{"kind Pool: the column Status showed .status, and shows .state"}},
	{"no selection", "    selectableFields: [{jsonPath: .spec.size}]\n", "", []string{"kind Pool: the field .spec.size cannot be selected by"}},
	{"another name", "name: pools.example.com", "name: ponds.example.com", []string{"kind Pool: is gone"}},
}

func TestBreaksOfSchemas(t *testing.T) {
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found := text(compareKinds(parse(t, released), parse(t, replaced(t, released, tt.from, tt.to))))
			if !slices.Equal(found, tt.breaks) {
				t.Errorf("found %q, want %q", found, tt.breaks)
			}
		})
	}
}

func parse(t *testing.T, manifest string) map[string]*crd {
	t.Helper()
	c := &crd{}
	if err := yaml.UnmarshalStrict([]byte(manifest), c); err != nil {
		t.Fatal(err)
	}
	return map[string]*crd{c.Name: c}
}

func text(found []breach) (lines []string) {
	for _, b := range found {
		lines = append(lines, b.name+": "+b.change)
	}
	return lines
}
