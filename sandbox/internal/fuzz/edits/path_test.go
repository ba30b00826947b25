// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	for text, want := range map[string]Path{
		"":                             nil,
		"spec":                         {"spec"},
		"spec.pools[0].name":           {"spec", "pools", 0, "name"},
		`spec.labels["example.com/a"]`: {"spec", "labels", "example.com/a"},
		`["0"][0][""]`:                 {"0", 0, ""},
		`spec["a\"]b\n"].c`:            {"spec", "a\"]b\n", "c"},
	} {
		got, err := ParsePath(text)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != text {
			t.Errorf("%s: read as %#v, %v, and written as %s", text, got, err, got)
		}
	}
	for text, says := range map[string]string{
		"spec..a": `"" is not the name of a field`, ".spec": `"" is not the name`, "spec[": "want an index", "spec[-1]": "want an index",
		`spec["a]`: "want an index or a quoted key", `spec["a"`: "want ] after", "spec[0]a": `want . or [ before "a"`, "a b": `"a b" is not the name of a field`,
		"spec[`a`]": "want an index",
	} {
		if got, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: read as %#v, error %v; want one that says %s", text, got, err, says)
		}
	}
}

// TestPathsAreReadAsWritten checks that parsing a path's string form returns the same path.
func TestPathsAreReadAsWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	steps := []any{"spec", "a-b", "example.com/a", "", " ", "水位", "\"", "]", "0", 0, 7, "a.b", "\x00", "[0]"}
	for range 1000 {
		var p Path
		for range random.IntN(6) {
			p = append(p, steps[random.IntN(len(steps))])
		}
		if got, err := ParsePath(p.String()); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%#v is written as %s and read as %#v, %v", p, p, got, err)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, text := range []string{"spec.a[0]", `a["b"].c`, "[", `["`, "a..b", `["\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		again, err := ParsePath(p.String())
		if err != nil || again.String() != p.String() || len(again) != len(p) {
			t.Errorf("%q is read as %#v, written as %s, and read as %#v, %v", text, p, p, again, err)
		}
		// Using the path must not panic, whether it exists in the object or not.
		object := map[string]any{"a": []any{map[string]any{"b": "c"}}}
		_, _ = p.Get(object)
		_, _ = p.Set(object, "x")
		_, _ = p.Remove(object)
	})
}

func TestSet(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{"spec": map[string]any{"list": []any{"a", "b"}, "n": int64(1)}}
	}
	for _, tc := range []struct {
		path string
		to   any
		want any
	}{
		{"spec.n", int64(2), map[string]any{"spec": map[string]any{"list": []any{"a", "b"}, "n": int64(2)}}},
		{"spec.list[1]", "c", map[string]any{"spec": map[string]any{"list": []any{"a", "c"}, "n": int64(1)}}},
		{"spec.new.inner", true, map[string]any{"spec": map[string]any{"list": []any{"a", "b"}, "n": int64(1), "new": map[string]any{"inner": true}}}},
		{"spec.n", gone{}, map[string]any{"spec": map[string]any{"list": []any{"a", "b"}}}},
		{"spec.list[0]", gone{}, map[string]any{"spec": map[string]any{"list": []any{"b"}, "n": int64(1)}}},
		{"spec", gone{}, map[string]any{}},
		{"spec.list[2]", "c", nil},
		{"spec.n.inner", "c", nil},
		{"spec.list.inner", "c", nil},
		{"spec[0]", "c", nil},
		{"spec.new[0]", "c", nil},
		{"spec.none", gone{}, nil},
	} {
		p, err := ParsePath(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		before := object()
		var got any
		var ok bool
		if tc.to == any(gone{}) {
			got, ok = p.Remove(before)
		} else {
			got, ok = p.Set(before, tc.to)
		}
		if ok != (tc.want != nil) || ok && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s to %v: %v, %t; want %v", tc.path, tc.to, got, ok, tc.want)
		}
		if !reflect.DeepEqual(before, object()) {
			t.Errorf("%s to %v: the object itself has changed: %v", tc.path, tc.to, before)
		}
	}
}
