// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// value is a value for a field, and what is or may be wrong with it.
type value struct {
	what  string
	value any
}

// huge exceeds all bounds of the schemas, but still fits into a request.
const huge = 100_000

// valuesOf returns the values that the type and the bounds of a field suggest.
func valuesOf(schema *apiextensionsv1.JSONSchemaProps, current any) []value {
	switch {
	case schema.Type == "string":
		return texts(schema, current.(string))
	case schema.Type == "integer":
		return numbers(schema)
	case schema.XIntOrString:
		return append(texts(schema, current.(string)), numbers(schema)...)
	case schema.Type == "boolean":
		return []value{{"its opposite", !current.(bool)}}
	case schema.Type == "array":
		return lists(schema, current.([]any))
	case schema.AdditionalProperties != nil:
		return entries(schema)
	default:
		return []value{{"empty", map[string]any{}}, {"with a field that does not exist", with(current.(map[string]any), "noSuchField", "text")}}
	}
}

func texts(schema *apiextensionsv1.JSONSchemaProps, current string) []value {
	values := append(hostile(current),
		value{"upper case", strings.ToUpper(current)},
		value{"lower case", strings.ToLower(current)},
		value{"of blanks around", "  " + current + "  "},
		value{"with a line end", current + "\n"},
		value{"written from right to left", "\u202e" + current},
		value{"of letters that look alike", strings.NewReplacer("a", "а", "e", "е", "o", "о").Replace(current)},
		value{"no UTF-8", json.RawMessage("\"\xff\xfe\"")},
	)
	if schema.MaxLength != nil {
		values = append(values, value{"as long as may be", strings.Repeat("x", int(*schema.MaxLength))},
			value{"one too long", strings.Repeat("x", int(*schema.MaxLength)+1)})
	}
	for _, allowed := range schema.Enum {
		var text string
		if json.Unmarshal(allowed.Raw, &text) == nil && text != current {
			values = append(values, value{text, text})
		}
	}
	return values
}

// hostile returns texts that are invalid nearly everywhere.
func hostile(current string) []value {
	return []value{
		{"empty", ""},
		{"a blank", " "},
		{"in another script", "水位-潮汐-🌊"},
		{"of control characters", "a\x00b\x1b[31m\x7f"},
		{"huge", strings.Repeat("x", huge)},
		{"huge in bytes", strings.Repeat("水", huge/3)},
		{"a path", "../../etc/passwd"},
		{"a template", "${x}{{.x}}%s%n$(x)"},
		{"a number in a text", "-1"},
		{"a truth value in a text", "true"},
		{"itself with a slash", current + "/" + current},
	}
}

// keys returns keys for a map.
func keys() []value {
	return append(hostile("example.com/"+Placeholder+"-key"),
		value{"of Kubernetes", "kubernetes.io/hostname"},
		value{"of Kubernetes, for a role", "node-role.kubernetes.io/control-plane"},
		value{"of Tidekeeper", "tidekeeper.dev/node-pools"},
		value{"of the pool's own role", "node-role.kubernetes.io/" + Placeholder},
		value{"as long as may be", strings.Repeat("x", 63)},
		value{"one too long", strings.Repeat("x", 64)},
	)
}

func numbers(schema *apiextensionsv1.JSONSchemaProps) []value {
	values := []value{
		{"zero", 0}, {"negative", -1}, {"one", 1},
		{"one more than 32 bits hold", math.MaxInt32 + 1}, {"the most negative of 32 bits", math.MinInt32},
		{"the most of 64 bits", int64(math.MaxInt64)}, {"more than 64 bits hold", json.Number("1e30")},
		{"a fraction", json.Number("1.5")}, {"a whole fraction", json.Number("1.0")}, {"a number in a text", "7"},
	}
	if least := schema.Minimum; least != nil {
		values = append(values, value{"the least", int64(*least)}, value{"below the least", int64(*least) - 1})
	}
	if most := schema.Maximum; most != nil {
		values = append(values, value{"the most", int64(*most)}, value{"above the most", int64(*most) + 1})
	}
	return values
}

func lists(schema *apiextensionsv1.JSONSchemaProps, current []any) []value {
	values := []value{
		{"empty", []any{}},
		{"an item twice", append(slices.Clone(current), current[0])},
		{"an item that is null", append(slices.Clone(current), nil)},
		{"an item that is a list", append(slices.Clone(current), []any{})},
		{"huge", slices.Repeat(current[:1], 2000)},
	}
	if schema.MaxItems != nil {
		values = append(values, value{"as many as may be, all the same", slices.Repeat(current[:1], int(*schema.MaxItems))},
			value{"one too many", slices.Repeat(current[:1], int(*schema.MaxItems)+1)})
	}
	return values
}

func entries(schema *apiextensionsv1.JSONSchemaProps) []value {
	many := func(count int) map[string]any {
		m := map[string]any{}
		for i := range count {
			m[fmt.Sprintf("example.com/%s-%d", Placeholder, i)] = "x"
		}
		return m
	}
	values := []value{{"empty", map[string]any{}}, {"huge", many(2000)}}
	if schema.MaxProperties != nil {
		values = append(values, value{"as many as may be", many(int(*schema.MaxProperties))}, value{"one too many", many(int(*schema.MaxProperties) + 1)})
	}
	return values
}
