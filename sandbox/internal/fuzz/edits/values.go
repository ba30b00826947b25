// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// valuesOf returns the values suggested by a property's name, type and bounds. `now` is the current
// value.
func valuesOf(s *Schema, name string, now any) []value {
	values := slices.Clone(knownValues(s, name))
	known := len(values) > 0
	for _, allowed := range s.Enum {
		if v, is := decoded(&allowed); is {
			values = append(values, value{Plausible, fmt.Sprintf("%.40v", v), v})
		}
	}
	switch now := now.(type) {
	case string:
		values = append(values, texts(s, name, now, known)...)
	case int64:
		values = append(values, numbers(s, name, now, known)...)
	case float64:
		values = append(values, value{Plausible, "twice as much", 2 * now}, value{Empty, "zero", float64(0)}, value{Beyond, "negative", -1.5}, value{Beyond, "huge", 1e300})
	case bool:
		values = append(values, value{Plausible, "its opposite", !now})
	case []any:
		values = append(values, lists(s, now)...)
	case map[string]any:
		values = append(values, objects(s, now)...)
	}
	return values
}

// texts returns values for a string property. `known` is set if the property belongs to a known
// kind, which already provides plausible values.
func texts(s *Schema, name, now string, known bool) []value {
	values := []value{{Empty, "empty", ""}}
	if !known && len(s.Enum) == 0 && isConstant(name, now) {
		// The value seems to be one of several constants that the operator accepts, although the
		// schema has no enum. Any other string is then probably wrong.
		values = append(values, value{Wrong, "no constant", now + "2"})
	} else if !known && len(s.Enum) == 0 {
		if s.Pattern == "" && s.Format == "" {
			values = append(values, value{Plausible, "with a suffix", now + "2"})
		}
		if text, ok := plausibleText(s); ok {
			values = append(values, value{Plausible, "another text", text})
		}
	}
	if s.MaxLength != nil && *s.MaxLength <= mostText {
		values = append(values, value{Limit, "as long as may be", lengthened(now, int(*s.MaxLength))},
			value{Beyond, "one too long", lengthened(now, int(*s.MaxLength)+1)})
	}
	if s.MinLength != nil && *s.MinLength > 0 && *s.MinLength <= mostText {
		values = append(values, value{Limit, "as short as may be", lengthened("", int(*s.MinLength))},
			value{Beyond, "one too short", lengthened("", int(*s.MinLength)-1)})
	}
	return append(values, hostile(now)...)
}

var (
	// constant matches strings such as Always or IfNotPresent. severalWords matches strings that
	// consist of several words, such as IfNotPresent.
	constant     = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	severalWords = regexp.MustCompile(`[a-z][A-Z]`)
	// ofConstants matches the names of properties whose values usually are constants.
	ofConstants = regexp.MustCompile(`(?i)(policy|strategy|mode|type|scope|effect|protocol|class|level|phase)$`)
)

// isConstant reports whether a property's value probably is a constant in the operator's code.
func isConstant(name, text string) bool {
	return constant.MatchString(text) && (severalWords.MatchString(text) || ofConstants.MatchString(name))
}

// lengthened truncates or extends a string to the given length in bytes.
func lengthened(text string, length int) string {
	if len(text) >= length {
		return text[:length]
	}
	return text + strings.Repeat("x", length-len(text))
}

func numbers(s *Schema, name string, now int64, known bool) []value {
	least, most := bounds(s)
	values := []value{{Empty, "zero", int64(0)}, {Beyond, "negative", int64(-1)}, {Limit, "one", int64(1)}}
	if now < most {
		values = append(values, value{Plausible, "one more", now + 1})
	}
	if now > least {
		values = append(values, value{Plausible, "one less", now - 1})
	}
	if s.Minimum != nil {
		values = append(values, value{Limit, "the least", least}, value{Beyond, "below the least", least - 1})
	}
	few := counted.MatchString(name)
	if s.Maximum != nil && (!few || most <= 50) {
		values = append(values, value{Limit, "the most", most})
	}
	if s.Maximum != nil {
		values = append(values, value{Beyond, "above the most", most + 1})
	}
	if !few && !known {
		values = append(values, value{Beyond, "the most of 32 bits", int64(math.MaxInt32)}, value{Beyond, "the least of 32 bits", int64(math.MinInt32)})
	}
	return append(values, value{Beyond, "more than 32 bits hold", int64(math.MaxInt32) + 1}, value{Beyond, "the most of 64 bits", int64(math.MaxInt64)},
		value{Beyond, "more than 64 bits hold", 1e30}, value{Wrong, "a fraction", 1.5}, value{Wrong, "a number in a text", "7"})
}

// mostItems is the largest maxItems for which a list with the maximum number of items is generated.
const mostItems = 50

func lists(s *Schema, now []any) []value {
	values := []value{{Empty, "empty", []any{}}, {Wrong, "with an item that is null", append(slices.Clone(now), nil)},
		{Wrong, "with an item that is a list", append(slices.Clone(now), []any{})}}
	if item, ok := another(s, now); ok {
		values = append(values, value{Plausible, "one more item", append(slices.Clone(now), item)})
	}
	if len(now) > 1 {
		reversed := slices.Clone(now)
		slices.Reverse(reversed)
		values = append(values, value{Plausible, "without its first item", slices.Clone(now[1:])}, value{Plausible, "the other way round", reversed})
	}
	if len(now) > 0 {
		values = append(values, value{Wrong, "an item twice", append(slices.Clone(now), now[0])})
		if s.MaxItems != nil && *s.MaxItems <= mostItems {
			values = append(values, value{Limit, "as many as may be", many(s, now, int(*s.MaxItems))}, value{Beyond, "one too many", many(s, now, int(*s.MaxItems)+1)},
				value{Wrong, "as many as may be, all the same", slices.Repeat(now[:1], int(*s.MaxItems))})
		}
	}
	return values
}

// many returns a list of the given length with distinct items.
func many(s *Schema, now []any, length int) []any {
	list := slices.Clone(now[:min(len(now), length)])
	for len(list) < length {
		list = append(list, distinct(s, now[0], len(list)))
	}
	return list
}

// another returns an item that is not in the list `now` yet, or false if it cannot generate one.
func another(s *Schema, now []any) (any, bool) {
	if len(now) > 0 {
		return distinct(s, now[0], len(now)), true
	}
	if s.Items == nil || s.Items.Schema == nil {
		return "added", true
	}
	return plausible(s.Items.Schema, "", deepest)
}

// distinct returns a copy of a list item, made unique by a number. The number is added to a string
// or an integer, or to the key fields of an object.
func distinct(s *Schema, item any, number int) any {
	switch item := item.(type) {
	case string:
		return fmt.Sprintf("%s%d", item, number)
	case int64:
		return item + int64(number)
	case map[string]any:
		item = maps.Clone(item)
		keys := s.XListMapKeys
		if len(keys) == 0 {
			keys = []string{"name", "key", "id"}
		}
		for _, key := range keys {
			if v, has := item[key]; has && !isObject(v) {
				item[key] = distinct(s, v, number)
			}
		}
		return item
	}
	return item
}

func isObject(v any) bool {
	_, is := v.(map[string]any)
	return is
}

// ofOtherTypes returns null, and a value of each type other than the current value's type.
func ofOtherTypes(now any) []value {
	values := []value{{Absent, "null", nil}}
	for _, v := range []value{
		{Wrong, "a text", "text"}, {Wrong, "a number", int64(7)}, {Wrong, "a truth value", true},
		{Wrong, "a list", []any{"text"}}, {Wrong, "an object", map[string]any{"text": "text"}},
	} {
		if fmt.Sprintf("%T", v.value) != fmt.Sprintf("%T", now) {
			values = append(values, v)
		}
	}
	return values
}
