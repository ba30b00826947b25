// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Masked is an object, a field or a number of objects that comparisons ignore.
type Masked struct {
	// Object is the key of an object, and Path is the path of a field or list item. If Path is
	// empty, the entire object is masked or, if Number is set, only the number of objects. In a
	// path, [] stands for a list item whose name differs between runs.
	Object string `json:"object"`
	Path   string `json:"path,omitempty"`
	Number bool   `json:"number,omitempty"`
	// Seen lists some of the values that the field has had in different runs.
	Seen []string `json:"seen,omitempty"`
	// Why is the reason for which comparisons ignore the object, field or number.
	Why string `json:"why"`
}

func (m Masked) String() string {
	text := m.Object
	switch {
	case m.Number:
		text += ", how many there are"
	case m.Path != "":
		text += " " + m.Path
	}
	if len(m.Seen) > 0 {
		shown := make([]string, 0, len(m.Seen))
		for _, value := range m.Seen {
			shown = append(shown, Shown(value))
		}
		text += " (" + strings.Join(shown, " or ") + ")"
	}
	return text
}

// Mask is the set of objects and fields that comparisons ignore. Its methods may be called
// concurrently; a nil mask masks nothing.
type Mask struct {
	mu  sync.Mutex
	all map[string]*Masked
}

// NewMask returns an empty mask.
func NewMask() *Mask { return &Mask{all: map[string]*Masked{}} }

// Learn masks the given differences, and returns the entries that it has added to the mask.
func (m *Mask) Learn(differences []Difference, why string) []Masked {
	lists := namedOtherwise(differences)
	var all []Masked
	for _, d := range differences {
		path := d.Path
		for _, list := range lists[d.Object] {
			path = anyItem(path, list)
		}
		masked := Masked{Object: d.Object, Path: exact(path), Number: d.Number, Why: why}
		if d.Path != "" {
			masked.Seen = []string{d.Want, d.Got}
		}
		all = append(all, masked)
	}
	return m.Add(all...)
}

// Add masks objects and fields, and returns the entries that it has added to the mask.
func (m *Mask) Add(all ...Masked) []Masked {
	m.mu.Lock()
	defer m.mu.Unlock()
	var added []Masked
	for _, masked := range all {
		key := fmt.Sprint(masked.Object, " ", masked.Number, " ", masked.Path)
		if known := m.all[key]; known != nil {
			for _, value := range masked.Seen {
				if !slices.Contains(known.Seen, value) && len(known.Seen) < mostSeen {
					known.Seen = append(known.Seen, value)
				}
			}
			continue
		}
		masked.Seen = slices.Clone(masked.Seen)
		m.all[key] = &masked
		added = append(added, masked)
	}
	return added
}

// mostSeen is the maximum number of values that are stored for a masked field.
const mostSeen = 4

// All returns the entries of the mask, sorted by object and path.
func (m *Mask) All() []Masked {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Masked, 0, len(m.all))
	for _, masked := range m.all {
		all = append(all, *masked)
	}
	slices.SortFunc(all, func(a, b Masked) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Path, b.Path)) })
	return all
}

// Hides reports whether a field of an object is masked.
func (m *Mask) Hides(object, path string) bool {
	of := m.of(object)
	return of.whole || of.hides(path)
}

// masks is the part of a mask that applies to an object: the entire object, the number of objects,
// or some paths.
type masks struct {
	whole, number bool
	paths         []string
}

func (m *Mask) of(object string) masks {
	var of masks
	if m == nil {
		return of
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, masked := range m.all {
		switch {
		case masked.Object != object:
		case masked.Number:
			of.number = true
		case masked.Path == "":
			of.whole = true
		default:
			of.paths = append(of.paths, masked.Path)
		}
	}
	return of
}

func (m masks) hides(path string) bool {
	if len(m.paths) == 0 {
		return false
	}
	path = exact(path)
	return slices.ContainsFunc(m.paths, func(masked string) bool { return Within(masked, path) })
}

// Within reports whether a path equals a masked path or is below it. In the masked path, [] matches
// any list item.
func Within(masked, path string) bool {
	for masked != "" {
		switch {
		case path == "":
			return false
		case strings.HasPrefix(masked, "[]") && path[0] == '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return false
			}
			masked, path = masked[2:], path[end+1:]
		case masked[0] != path[0]:
			return false
		default:
			masked, path = masked[1:], path[1:]
		}
	}
	return path == "" || path[0] == '.' || path[0] == '['
}

var numbered = regexp.MustCompile(`#\d+\]`)

// exact removes the numbers that identify list items from a path. A list item has a number if it
// has no key field (such as a name), or the same key as an earlier item.
func exact(path string) string { return numbered.ReplaceAllString(path, "]") }

// anyItem replaces the name of a list item in a path with []. It only replaces an item of the list
// at the path `list`.
func anyItem(path, list string) string {
	rest, is := strings.CutPrefix(path, list+"[")
	if !is {
		return path
	}
	_, rest, _ = strings.Cut(rest, "]")
	return list + "[]" + rest
}

// namedOtherwise returns the lists whose items have different names in each run. In such a list,
// each of the two states has items that the other state lacks. The result maps the key of an object
// to the paths of such lists.
func namedOtherwise(differences []Difference) map[string][]string {
	missing, there := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(in map[string]map[string]bool, object, list string) {
		if in[object] == nil {
			in[object] = map[string]bool{}
		}
		in[object][list] = true
	}
	for _, d := range differences {
		at := strings.LastIndexByte(d.Path, '[')
		if at < 0 {
			continue
		}
		switch {
		case d.Got == "":
			note(missing, d.Object, d.Path[:at])
		case d.Want == "":
			note(there, d.Object, d.Path[:at])
		}
	}
	lists := map[string][]string{}
	for object := range missing {
		for _, list := range slices.Sorted(maps.Keys(missing[object])) {
			if there[object][list] {
				lists[object] = append(lists[object], list)
			}
		}
	}
	return lists
}
