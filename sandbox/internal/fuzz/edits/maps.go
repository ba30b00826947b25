// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func objects(s *Schema, now map[string]any) []value {
	values := []value{{Empty, "empty", map[string]any{}}}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return append(values, entries(s, now)...)
	}
	more := maps.Clone(now)
	more["noSuchField"] = map[string]any{"deep": []any{int64(1), "a", nil}}
	return append(values, value{Hostile, "with a field that no one knows", more})
}

// mostEntries is the largest maxProperties for which a map with the maximum number of entries is
// generated.
const mostEntries = 100

// entries returns values for a map property: with an entry added or removed, with the maximum
// number of entries, and with hostile keys.
func entries(s *Schema, now map[string]any) []value {
	names := slices.Sorted(maps.Keys(now))
	with, ok := plausible(s.AdditionalProperties.Schema, "", deepest)
	if len(names) > 0 {
		with, ok = now[names[0]], true
	}
	if !ok {
		return nil
	}
	plus := func(key string) map[string]any {
		more := maps.Clone(now)
		more[key] = with
		return more
	}
	filled := func(length int64) map[string]any {
		more := map[string]any{}
		for _, name := range names[:min(int64(len(names)), length)] {
			more[name] = now[name]
		}
		for i := 0; int64(len(more)) < length; i++ {
			more[fmt.Sprintf("example.com/added-%d", i)] = with
		}
		return more
	}
	values := []value{
		{Plausible, "one more entry", plus("added")},
		{Plausible, "one more entry with a prefix", plus("example.com/added")},
		{Limit, "a key as long as that of a label may be", plus(strings.Repeat("x", 63))},
		{Beyond, "a key one longer than that of a label", plus(strings.Repeat("x", 64))},
	}
	if s.MaxProperties != nil && *s.MaxProperties >= 0 && *s.MaxProperties <= mostEntries {
		values = append(values, value{Limit, "as many entries as may be", filled(*s.MaxProperties)}, value{Beyond, "one entry too many", filled(*s.MaxProperties + 1)})
	}
	if len(names) > 1 {
		fewer := maps.Clone(now)
		delete(fewer, names[0])
		values = append(values, value{Plausible, "without its first entry", fewer})
	}
	for _, key := range hostileKeys() {
		values = append(values, value{Hostile, key.what, plus(key.key)})
	}
	return values
}

// hostileKeys returns map keys that are invalid, or reserved by Kubernetes.
func hostileKeys() []struct{ what, key string } {
	return []struct{ what, key string }{
		{"a key that is empty", ""},
		{"a key with blanks", "a b"},
		{"a key that is a blank", " "},
		{"a key with two slashes", "a/b/c"},
		{"a key of Kubernetes", "kubernetes.io/hostname"},
		{"a key of a role of nodes", "node-role.kubernetes.io/control-plane"},
		{"a key in another script", "水位"},
		{"a key with control characters", "a\x00\x1b[31m\x07"},
		{"a key that is a path", "../../etc/passwd"},
		{"a key that is a template", "${x}{{.x}}%s%n$(x)`x`"},
		{"a key that is a number", "-1"},
		{"a key that is a truth value", "true"},
		{"a long key", strings.Repeat("x", 300)},
	}
}

// conflicts adds edits that copy the keys of each string map in the sample object to every other
// string map, with a different value. Operators often merge maps, such as user labels with a
// selector's labels.
func (w *walker) conflicts() {
	for _, at := range w.maps {
		for _, from := range w.maps {
			now, _ := at.Get(w.sample)
			other, _ := from.Get(w.sample)
			if from.String() == at.String() || len(other.(map[string]any)) == 0 {
				continue
			}
			more := maps.Clone(now.(map[string]any))
			for key := range other.(map[string]any) {
				more[key] = "conflict"
			}
			w.add(place{path: at}, value{Wrong, "in conflict with " + from.String(), more})
		}
	}
}
