// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// things is the schema of a test kind that has a field of each type.
const things = `
properties:
  flag: {type: boolean}
  mode: {type: string, enum: [Fast, Slow]}
  number: {type: integer, minimum: 2, maximum: 7}
  word: {type: string, maxLength: 5}
  words: {type: array, maxItems: 2, items: {type: string, maxLength: 4}}
  pairs: {type: object, maxProperties: 2, additionalProperties: {type: boolean}}
  parts: {type: array, maxItems: 2, items: {properties: {a: {type: string, maxLength: 3}, b: {type: boolean}}}}
`

// thingsBut makes the largest objects of the test kind, for a fake API server that accepts all
// specs except those for which `refused` returns true.
func thingsBut(t *testing.T, refused func(spec map[string]any) bool) (made map[string]any, lacking []string) {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(things), schema); err != nil {
		t.Fatal(err)
	}
	m := &maker{kind{"example.com/v1", "Thing", schema}, map[string]any{}, func(o *unstructured.Unstructured) bool {
		return !refused(o.Object["spec"].(map[string]any))
	}}
	all, lacking := m.make()
	made = map[string]any{}
	for _, l := range all {
		made[l.of] = l.object.Object["spec"]
	}
	return made, lacking
}

// TestMaker checks that the maker returns an object for each extreme of each field and an object
// with all fields, and reports a field for which no shape is accepted.
func TestMaker(t *testing.T) {
	// The field "number" is valid only with the mode "Slow", and "word" must begin with a
	// lower-case x.
	made, lacking := thingsBut(t, func(spec map[string]any) bool {
		word, _ := spec["word"].(string)
		return spec["number"] != nil && spec["mode"] != "Slow" || word != "" && word[0] != 'x'
	})
	one := func(name string, value any) map[string]any { return map[string]any{name: value} }
	slow := func(number int64) map[string]any { return map[string]any{"mode": "Slow", "number": number} }
	part := func(a string) map[string]any { return map[string]any{"a": a, "b": true} }
	want := map[string]any{
		"spec.flag, extreme 0": one("flag", true), "spec.flag, extreme 1": one("flag", false),
		"spec.mode, extreme 0": one("mode", "Fast"), "spec.mode, extreme 1": one("mode", "Slow"),
		"spec.number, extreme 0": slow(7), "spec.number, extreme 1": slow(2),
		"spec.word, extreme 0":  one("word", "x00xx"),
		"spec.words, extreme 0": one("words", []any{"x00x", "x01x"}),
		"spec.pairs, extreme 0": one("pairs", map[string]any{"x00000": true, "x00001": true}),
		"spec.pairs, extreme 1": one("pairs", map[string]any{"x00000": false, "x00001": false}),
		"spec.parts, extreme 0": one("parts", []any{part("x00"), part("x01")}),
	}
	both := map[string]any{"flag": true, "word": "x00xx"}
	for _, field := range []string{"words", "pairs", "parts"} {
		for name, value := range want["spec."+field+", extreme 0"].(map[string]any) {
			both[name] = value
		}
	}
	with := func(mode string, number any) map[string]any {
		all := map[string]any{"mode": mode}
		for name, value := range both {
			all[name] = value
		}
		if number != nil {
			all["number"] = number
		}
		return all
	}
	want["all that go together, 0"], want["all that go together, 1"] = with("Fast", nil), with("Fast", nil)
	want["all that go together, 2"] = with("Slow", int64(7))
	if diff := cmp.Diff(want, made); diff != "" || len(lacking) > 0 {
		t.Errorf("without %q; (-want +got):\n%s", lacking, diff)
	}
	if _, lacking := thingsBut(t, func(spec map[string]any) bool { return spec["word"] != nil }); len(lacking) != 1 || lacking[0] != "spec.word, extreme 0" {
		t.Errorf("no object was made for %q, want the word", lacking)
	}
}
