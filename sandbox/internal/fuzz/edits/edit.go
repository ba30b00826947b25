// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"cmp"
	"encoding/json"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Class is what a value is for its property.
type Class string

// Classes of values.
const (
	// Plausible is what a user could want.
	Plausible Class = "plausible"
	// Limit is the least or the most that is allowed, or what a rule names.
	Limit Class = "limit"
	// Beyond is more or less than what is allowed or makes sense.
	Beyond Class = "beyond"
	// Wrong is of another type, or is not what the property is about.
	Wrong Class = "wrong"
	// Empty is "", 0, [] or {}.
	Empty Class = "empty"
	// Absent is no value.
	Absent Class = "absent"
	// Hostile is what is made to break programs.
	Hostile Class = "hostile"
)

// Classes are all of them, those that tell most first.
var Classes = []Class{Plausible, Empty, Beyond, Wrong, Absent, Limit, Hostile}

// Meant reports whether users may want values of the class, so that the operator must come
// to where it comes with a new object. Of others it may keep what was there before.
func (c Class) Meant() bool {
	return c == Plausible || c == Limit || c == Empty || c == Absent
}

// Edit sets one property of an object.
type Edit struct {
	// Field is the property.
	Field string `json:"field"`
	Class Class  `json:"class"`
	// What describes the value.
	What string `json:"what"`
	// Path is what is set: the field, or that part of the object around it that the
	// sample has not.
	Path Path `json:"path"`
	// Remove removes what is at Path; Value is not used.
	Remove bool `json:"remove,omitempty"`
	Value  any  `json:"value"`
}

func (e Edit) String() string { return e.Field + ": " + e.What }

// Apply returns a copy of an object that is edited, and false if it has no place for
// the edit.
func (e Edit) Apply(object map[string]any) (map[string]any, bool) {
	var edited any
	var ok bool
	if e.Remove {
		edited, ok = e.Path.Remove(object)
	} else {
		edited, ok = e.Path.Set(object, e.Value)
	}
	if !ok {
		return nil, false
	}
	whole, is := edited.(map[string]any)
	return whole, is
}

// UnmarshalJSON implements [json.Unmarshaler]. Whole numbers stay whole.
func (e *Edit) UnmarshalJSON(text []byte) error {
	type plain Edit
	read := struct {
		*plain
		Value json.RawMessage `json:"value"`
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	e.Value = nil
	if len(read.Value) == 0 {
		return nil
	}
	return utiljson.Unmarshal(read.Value, &e.Value)
}

// order puts edits into the order in which they are played: one of each property first,
// then the next of each, of the classes that tell most first; and what the sample has
// before what it has not, what is at the top before what is deep inside.
func order(all []Edit, inSample map[string]bool) {
	rank := map[string]int{}
	slices.SortStableFunc(all, func(a, b Edit) int {
		return cmp.Compare(slices.Index(Classes, a.Class), slices.Index(Classes, b.Class))
	})
	round := make(map[string]int, len(all))
	for _, e := range all {
		round[e.String()] = rank[e.Field]
		rank[e.Field]++
		if e.Class != Plausible {
			round[e.String()]++
		}
	}
	absent := func(e Edit) int {
		if inSample[e.Field] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b Edit) int {
		return cmp.Or(
			cmp.Compare(round[a.String()]+2*absent(a), round[b.String()]+2*absent(b)),
			cmp.Compare(absent(a), absent(b)), cmp.Compare(len(a.Path), len(b.Path)), cmp.Compare(a.Field, b.Field))
	})
}
