// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is a deviation of the actual state from the expected state.
type Difference struct {
	// Object is the key of an object, or the key that several objects with generated names share.
	Object string
	// Path is the path of a field or list item, or empty if the difference concerns the entire
	// object.
	Path string
	// Number is set if the difference is in the number of objects with the key.
	Number    bool
	Want, Got string
	// Text describes the difference. It is empty if the difference is that the field at Path has
	// the value Got instead of Want.
	Text string
}

// IsIncomplete reports whether one of the states lacks the object or the field. That may be because
// the state was observed before an operator was done.
func (d Difference) IsIncomplete() bool {
	return d.Path == "" || d.Text == "" && (d.Want == "" || d.Got == "")
}

func (d Difference) String() string {
	if d.Text != "" {
		return d.Object + ": " + d.Text
	}
	return fmt.Sprintf("%s: %s is %s, not %s", d.Object, d.Path, Shown(d.Got), Shown(d.Want))
}

// Lines returns a line for each difference.
func Lines(differences []Difference) []string {
	all := make([]string, 0, len(differences))
	for _, d := range differences {
		all = append(all, d.String())
	}
	return all
}

// Shown formats a value for reports. It truncates a long value, and returns "missing" for an empty
// value.
func Shown(value string) string {
	const longest = 120
	switch {
	case value == "":
		return "missing"
	case len(value) > longest:
		return fmt.Sprintf("%.*s…", longest, value)
	}
	return value
}

// Rules exclude differences from comparisons. A nil function excludes nothing.
type Rules struct {
	// Ignore reports whether to ignore the field at the given path of an object.
	Ignore func(object, path string) bool
	// Same reports whether two unequal values count as equal.
	Same func(object, path, want, got string) bool
	// MayBeMore reports whether there may be more objects with a key than expected.
	MayBeMore func(object string) bool
}

func (r Rules) ignore(object, path string) bool { return r.Ignore != nil && r.Ignore(object, path) }

// Compare returns the differences between the actual state, got, and the expected state, want.
func Compare(want, got State, mask *Mask, rules Rules) []Difference {
	var all []Difference
	keys := maps.Clone(want)
	if keys == nil {
		keys = State{}
	}
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		masked := mask.of(key)
		if masked.whole {
			continue
		}
		visible := func(group []Fields) []Fields {
			return leave(group, func(path string) bool { return masked.hides(path) || rules.ignore(key, path) })
		}
		w, g := visible(want[key]), visible(got[key])
		mayBeMore := len(g) > len(w) && rules.MayBeMore != nil && rules.MayBeMore(key)
		switch {
		case mayBeMore || masked.number && len(w)*len(g) > 0:
			// The number of objects with this key may differ. The fields of these objects are
			// compared below.
		case len(w) == 0 && len(g) == 1:
			all = append(all, Difference{Object: key, Text: "it is there, and should not be"})
		case len(w) == 0:
			all = append(all, Difference{Object: key, Text: fmt.Sprintf("there are %d, and should be none", len(g))})
		case len(g) == 0:
			all = append(all, Difference{Object: key, Text: "it is missing"})
		case len(w) != len(g):
			all = append(all, Difference{Object: key, Number: true, Text: fmt.Sprintf("there are %d, not %d", len(g), len(w))})
		}
		if len(w)*len(g) > 0 {
			all = append(all, compareObjects(key, w, g, rules)...)
		}
	}
	return all
}

// leave returns copies of a group of objects, without the fields for whose paths `out` returns
// true.
func leave(group []Fields, out func(path string) bool) []Fields {
	left := make([]Fields, 0, len(group))
	for _, f := range group {
		visible := maps.Clone(f)
		maps.DeleteFunc(visible, func(path, _ string) bool { return out(path) })
		left = append(left, visible)
	}
	return left
}

// compareObjects compares the actual objects that share a key with the expected objects. It
// compares each object with the most similar object of the other state.
func compareObjects(key string, want, got []Fields, rules Rules) []Difference {
	same := func(path, want, got string) bool {
		return rules.Same != nil && rules.Same(key, path, want, got)
	}
	differs := map[string]bool{}
	var w, g []Fields
	for _, p := range match(want, got, same) {
		w, g = append(w, p.want), append(g, p.got)
		for _, path := range p.differ(same) {
			differs[path] = true
		}
	}
	wanted, there := pathsOf(w), pathsOf(g)
	var fields, mixed []Difference
	told := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(differs)) {
		d := Difference{Object: key, Path: path, Want: Values(w, path), Got: Values(g, path)}
		if d.Want == d.Got {
			d.Text = fmt.Sprintf("%s is %s, but not in the objects that should have it", path, Shown(d.Got))
			mixed = append(mixed, d)
			continue
		}
		if item := onlyIn(wanted, there, path); item != "" {
			d.Path, d.Text = item, item+" is missing"
		} else if item := onlyIn(there, wanted, path); item != "" {
			d.Path, d.Text = item, item+" is there, and should not be"
		}
		if !told[d.Path] {
			told[d.Path] = true
			fields = append(fields, d)
		}
	}
	if len(fields) > 0 {
		return fields
	}
	return mixed
}

// pathsOf returns the paths of all fields in a group of objects.
func pathsOf(group []Fields) map[string]bool {
	paths := map[string]bool{}
	for _, f := range group {
		for path := range f {
			paths[path] = true
		}
	}
	return paths
}

// onlyIn returns the path of the list item that contains the field at the given path, if the item
// has several fields and occurs only in the first of the two sets of paths. Otherwise, it returns
// "".
func onlyIn(one, other map[string]bool, path string) string {
	for i, c := range path {
		if c != ']' {
			continue
		}
		item := path[:i+1]
		fields := func(all map[string]bool) (count int) {
			for path := range all {
				if strings.HasPrefix(path, item) {
					count++
				}
			}
			return count
		}
		if fields(one) > 1 && fields(other) == 0 {
			return item
		}
	}
	return ""
}
