// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"cmp"
	"encoding/json"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Class is a kind of value that an edit sets, such as a value beyond the limits of a property.
type Class string

// Classes of the values that edits set.
const (
	// Plausible is a value that users may want.
	Plausible Class = "plausible"
	// Limit is the smallest or largest allowed value, or a value near a constant in a CEL rule.
	Limit Class = "limit"
	// Beyond is a value outside the limits, or an unreasonably large or small value.
	Beyond Class = "beyond"
	// Wrong is a value of another type, or a meaningless value for the property.
	Wrong Class = "wrong"
	// Empty is "", 0, [] or {}.
	Empty Class = "empty"
	// Absent means that the edit removes the property or sets it to null.
	Absent Class = "absent"
	// Hostile is a value that is designed to break programs.
	Hostile Class = "hostile"
)

// Classes lists all classes of values, in the order in which they are tested.
var Classes = []Class{Plausible, Empty, Beyond, Wrong, Absent, Limit, Hostile}

// Meant reports whether users may want values of the class. An edit that sets such a value must
// lead to the same cluster state as a new object with this value. After other edits, the operator
// may keep the previous state.
func (c Class) Meant() bool {
	return c == Plausible || c == Limit || c == Empty || c == Absent
}

// Edit sets or removes a property of an object.
type Edit struct {
	// Field is the path of the property that the edit sets or removes.
	Field string `json:"field"`
	Class Class  `json:"class"`
	// What briefly describes the property's new value.
	What string `json:"what"`
	// Path is the path that Value is assigned to: the path of the edited property, or of its
	// outermost parent that is missing in the sample object.
	Path Path `json:"path"`
	// Remove is set if the edit removes the value at Path. Value is unused in this case.
	Remove bool `json:"remove,omitempty"`
	Value  any  `json:"value"`
}

func (e Edit) String() string { return e.Field + ": " + e.What }

// Apply returns an edited copy of an object. It returns false if the edit's path does not exist in
// the object.
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

// UnmarshalJSON implements [json.Unmarshaler]. It decodes integers as int64 instead of float64.
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

// order sorts edits into the order in which they are tested. A round contains at most one edit of
// each property, and successive rounds set values in the order of Classes. The rounds of a property
// that is missing in the sample object start two rounds later. Within a round, edits of properties
// in the sample object come first, and edits of shallow properties come before edits of deep
// properties.
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
