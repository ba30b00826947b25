// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// schema has one field of each type.
var schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
	"text":   {Type: "string", MaxLength: ptr.To[int64](5), Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
	"number": {Type: "integer", Minimum: ptr.To[float64](2), Maximum: ptr.To[float64](9)},
	"switch": {Type: "boolean"},
	"list": {Type: "array", MaxItems: ptr.To[int64](3), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"inner": {Type: "string"}},
	}}},
	"map":   {Type: "object", MaxProperties: ptr.To[int64](2), AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
	"other": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
}}

var (
	example = map[string]any{"text": "a", "number": 3, "switch": true, "list": []any{map[string]any{"inner": "x"}}, "map": map[string]any{"k": "v"}}
	second  = map[string]any{"text": "a", "number": 4, "other": map[string]any{Placeholder: "o"}}
)

func mutations(t *testing.T) []Mutation {
	t.Helper()
	all, err := Mutations(schema, example, second)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// patched returns the patch of one mutation.
func patched(t *testing.T, what string) string {
	t.Helper()
	all := mutations(t)
	i := slices.IndexFunc(all, func(m Mutation) bool { return m.String() == what })
	if i < 0 {
		t.Fatalf("there is no mutation %q", what)
	}
	return string(all[i].Patch("obj"))
}

func TestMutation(t *testing.T) {
	const whole = `"list":[{"inner":"x"}],"map":{"k":"v"},"number":3,"switch":true,"text":"a"`
	for what, want := range map[string]string{
		"spec: absent":                               `[{"op":"remove","path":"/spec"}]`,
		"spec: a number":                             `[{"op":"replace","path":"/spec","value":7}]`,
		"spec.text: absent":                          strings.Replace(whole, `,"text":"a"`, "", 1),
		"spec.text: null":                            strings.Replace(whole, `"a"`, "null", 1),
		"spec.text: twice":                           `"text":"a",` + whole,
		"spec.text: b":                               strings.Replace(whole, `"a"`, `"b"`, 1),
		"spec.text: one too long":                    strings.Replace(whole, `"a"`, `"xxxxxx"`, 1),
		"spec.text: of control characters":           strings.Replace(whole, `"a"`, `"a\u0000b\u001b[31m`+"\x7f"+`"`, 1),
		"spec.number: below the least":               strings.Replace(whole, "3", "1", 1),
		"spec.number: above the most":                strings.Replace(whole, "3", "10", 1),
		"spec.number: as in another example":         strings.Replace(whole, "3", "4", 1),
		"spec.number: more than 64 bits hold":        strings.Replace(whole, "3", "1e30", 1),
		"spec.switch: its opposite":                  strings.Replace(whole, "true", "false", 1),
		"spec.list: an item twice":                   strings.Replace(whole, `[{"inner":"x"}]`, `[{"inner":"x"},{"inner":"x"}]`, 1),
		"spec.list[]: absent":                        strings.Replace(whole, `[{"inner":"x"}]`, `[]`, 1),
		"spec.list[].inner: a list":                  strings.Replace(whole, `"x"`, `["text"]`, 1),
		"spec.map: conflicts with spec.other":        strings.Replace(whole, `{"k":"v"}`, `{"k":"v","obj":"conflict"}`, 1),
		"spec.map{key}: a blank":                     strings.Replace(whole, `{"k":"v"}`, `{" ":"v","k":"v"}`, 1),
		"spec.map{}: empty":                          strings.Replace(whole, `{"k":"v"}`, `{"k":""}`, 1),
		"spec.other{}: a number":                     `"number":4,"other":{"obj":7},"text":"a"`,
		"spec: with a field that does not exist":     strings.Replace(whole, `"number"`, `"noSuchField":"text","number"`, 1),
		"spec.list: one too many":                    strings.Replace(whole, `[{"inner":"x"}]`, `[`+strings.Repeat(`{"inner":"x"},`, 3)+`{"inner":"x"}]`, 1),
		"spec.map: as many as may be":                strings.Replace(whole, `{"k":"v"}`, `{"example.com/obj-0":"x","example.com/obj-1":"x"}`, 1),
		"spec.list: as many as may be, all the same": strings.Replace(whole, `[{"inner":"x"}]`, `[`+strings.Repeat(`{"inner":"x"},`, 2)+`{"inner":"x"}]`, 1),
	} {
		if !strings.HasPrefix(want, "[") {
			want = `[{"op":"replace","path":"/spec","value":{` + want + `}}]`
		}
		if diff := cmp.Diff(want, patched(t, what)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// Every mutation differs from its example, the result is the same every time, and the
// examples are not modified.
func TestMutations(t *testing.T) {
	before, err := json.Marshal([]any{example, second})
	if err != nil {
		t.Fatal(err)
	}
	all, again := mutations(t), mutations(t)
	seen := map[string]bool{}
	for i, m := range all {
		patch := string(m.Patch("obj"))
		if m.String() != again[i].String() || patch != string(again[i].Patch("obj")) {
			t.Errorf("mutation %d is %s, then %s", i, m, again[i])
		}
		if seen[m.String()] {
			t.Errorf("%s: two mutations have this name", m)
		}
		seen[m.String()] = true
	}
	after, err := json.Marshal([]any{example, second})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the examples were changed (-before +after):\n%s", diff)
	}
	// The spec, its six fields, the item and its field, two values and two keys.
	if fields := Fields(all); fields != 13 {
		t.Errorf("mutations of %d fields; want 13", fields)
	}
}

func TestMutationsNeedAnExampleOfEachField(t *testing.T) {
	_, err := Mutations(schema, example)
	if err == nil || err.Error() != `no example has the fields ["spec.other"]` {
		t.Errorf("got error %v; want one that names spec.other", err)
	}
}
