// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Schema is the OpenAPI schema of a property.
type Schema = apiextensionsv1.JSONSchemaProps

// deepest is the number of nesting levels on which generated values contain optional properties and
// list items.
const deepest = 3

// plausible returns a value that a schema allows, ignoring the schema's CEL rules. It returns false
// if it finds no such value. `name` is the property's name. `depth` is the number of nesting levels
// on which optional properties and list items are generated.
func plausible(s *Schema, name string, depth int) (any, bool) {
	if value, is := decoded(s.Default); is && !empty(value) {
		return value, true
	}
	for _, allowed := range s.Enum {
		if value, is := decoded(&allowed); is && !empty(value) {
			return value, true
		}
	}
	if known := knownValues(s, name); len(known) > 0 {
		return known[0].value, true
	}
	switch {
	case s.XIntOrString:
		return int64(1), true
	case s.Type == "string":
		return plausibleText(s)
	case s.Type == "integer":
		least, most := bounds(s)
		return min(max(1, least), most), true
	case s.Type == "number":
		least, most := bounds(s)
		return float64(min(max(1, least), most)), true
	case s.Type == "boolean":
		return true, true
	case s.Type == "array":
		return plausibleList(s, name, depth)
	}
	return plausibleObject(s, depth)
}

func plausibleList(s *Schema, name string, depth int) (any, bool) {
	list := []any{}
	if s.Items == nil || s.Items.Schema == nil {
		return list, true
	}
	if depth <= 0 && (s.MinItems == nil || *s.MinItems == 0) {
		return list, true
	}
	item, ok := plausible(s.Items.Schema, strings.TrimSuffix(name, "s"), depth-1)
	if !ok {
		return list, s.MinItems == nil || *s.MinItems == 0
	}
	return append(list, item), true
}

func plausibleObject(s *Schema, depth int) (any, bool) {
	object := map[string]any{}
	for _, name := range s.Required {
		property := s.Properties[name]
		value, ok := plausible(&property, name, depth-1)
		if !ok {
			return nil, false
		}
		object[name] = value
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		value, ok := plausible(s.AdditionalProperties.Schema, "", depth-1)
		if ok {
			object["added"] = value
		}
		return object, true
	}
	if len(object) > 0 || depth <= 0 {
		return object, true
	}
	// Set one optional property, because an empty object would test little.
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if value, ok := plausible(&property, name, depth-1); ok && !empty(value) {
			object[name] = value
			break
		}
	}
	return object, true
}

// empty reports whether a value is "", 0, false, [], {} or null.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case int64:
		return value == 0
	case float64:
		return value == 0
	case bool:
		return !value
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// decoded decodes a JSON value in a schema, such as a default. It returns false for a missing or
// invalid value.
func decoded(j *apiextensionsv1.JSON) (any, bool) {
	if j == nil {
		return nil, false
	}
	var value any
	if err := utiljson.Unmarshal(j.Raw, &value); err != nil {
		return nil, false
	}
	return value, true
}

// bounds returns the smallest and largest integer that a schema allows.
func bounds(s *Schema) (least, most int64) {
	least, most = math.MinInt64, math.MaxInt64
	if s.Format == "int32" {
		least, most = math.MinInt32, math.MaxInt32
	}
	if s.Minimum != nil {
		if least = int64(math.Ceil(*s.Minimum)); s.ExclusiveMinimum {
			least = int64(math.Floor(*s.Minimum)) + 1
		}
	}
	if s.Maximum != nil {
		if most = int64(math.Floor(*s.Maximum)); s.ExclusiveMaximum {
			most = int64(math.Ceil(*s.Maximum)) - 1
		}
	}
	return least, most
}

// formats maps OpenAPI string formats, such as date-time, to an example of a valid string.
var formats = map[string]string{
	"date-time": "2030-01-02T03:04:05Z", "date": "2030-01-02", "duration": "90s", "uri": "https://example.com/a", "hostname": "a.example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "cidr": "192.0.2.0/24", "uuid": "123e4567-e89b-12d3-a456-426614174000", "byte": "YQ==",
	"email": "a@example.com", "mac": "00:00:5e:00:53:01", "password": "secret",
}

func plausibleText(s *Schema) (any, bool) {
	text := "added"
	switch {
	case formats[s.Format] != "":
		text = formats[s.Format]
	case s.Pattern != "":
		var ok bool
		if text, ok = matching(s.Pattern); !ok {
			return nil, false
		}
	}
	length := int64(len(text))
	if s.MinLength != nil && length < *s.MinLength && s.Pattern == "" {
		text += strings.Repeat("x", int(min(*s.MinLength, mostText)-length))
	}
	if s.MaxLength != nil && length > *s.MaxLength {
		if s.Pattern != "" || s.Format != "" {
			return nil, false
		}
		text = text[:max(*s.MaxLength, 0)]
	}
	return text, true
}

// mostText is the maximum length of generated strings, in characters.
const mostText = 20_000

// matching returns a short string that matches a regular expression, or false if it finds none.
func matching(pattern string) (string, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	// Try without optional parts first, which results in a shorter string.
	for optional := range 3 {
		var b strings.Builder
		grow(&b, tree, optional)
		if text := b.String(); text != "" && compiled.MatchString(text) {
			return text, true
		}
	}
	return "", false
}

// grow writes a string that matches an expression. If `optional` is 0, the string omits optional
// parts and contains the first of several alternatives. Larger numbers include optional parts and
// select later alternatives.
func grow(b *strings.Builder, e *syntax.Regexp, optional int) {
	if b.Len() > mostText {
		return
	}
	times := 1
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
		return
	case syntax.OpCharClass:
		b.WriteRune(common(e.Rune))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
		return
	case syntax.OpAlternate:
		grow(b, e.Sub[min(optional, len(e.Sub)-1)], optional)
		return
	case syntax.OpStar, syntax.OpQuest:
		times = min(optional, 1)
	case syntax.OpPlus:
		times = max(optional, 1)
	case syntax.OpRepeat:
		times = e.Min
		if optional > 0 && times == 0 && e.Max != 0 {
			times = 1
		}
	}
	for range times {
		for _, sub := range e.Sub {
			grow(b, sub, optional)
		}
	}
}

// common returns a character from a character class, preferably a character that is common in
// names.
func common(class []rune) rune {
	for _, r := range "a1A-" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= r && r <= class[i+1] {
				return r
			}
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}
