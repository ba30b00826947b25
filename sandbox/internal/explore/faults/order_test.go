// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// TestOrder checks that faults which resemble injected faults, or faults that revealed a problem,
// come later.
func TestOrder(t *testing.T) {
	call := func(verb, name string) *observe.Call {
		return &observe.Call{Verb: verb, Resource: "claims", Namespace: "shop", Name: name}
	}
	crash := func(step int, name string) Planned {
		return Planned{Fault{Kind: "CrashAfter", Step: step, Until: step, Call: call("update", name), Nth: 1}, 80}
	}
	freeze := Planned{Fault{Kind: "Freeze", Step: 3, Until: 4, Resource: "sets"}, 72}
	for _, tc := range []struct {
		name string
		// left lists the faults to inject. order lists their indexes in the expected sequence.
		// found lists the indexes of faults that reveal a problem.
		left         []Planned
		found, order []int
	}{
		{name: "by value", left: []Planned{freeze, crash(1, "a")}, order: []int{1, 0}},
		{name: "equal ones in their order", left: []Planned{crash(1, "a"), crash(2, "b"), crash(3, "c")}, order: []int{0, 1, 2}},
		{name: "another kind after a while", left: []Planned{crash(1, "a"), crash(1, "b"), crash(1, "c"), crash(1, "d"), freeze}, order: []int{0, 1, 2, 4, 3}},
		{name: "not the same again", left: []Planned{crash(1, "a"), crash(1, "a"), crash(1, "b")}, order: []int{0, 2, 1}},
		{name: "another place after a finding", left: []Planned{crash(1, "a"), crash(1, "b"), freeze}, found: []int{0}, order: []int{0, 2, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := NewHistory()
			var order []int
			left := slices.Clone(tc.left)
			numbers := []int{0, 1, 2, 3, 4}[:len(left)]
			numbers = slices.Clone(numbers)
			for len(left) > 0 {
				i := h.Next(left)
				order = append(order, numbers[i])
				h.NotePlayed(&left[i].Fault)
				if slices.Contains(tc.found, numbers[i]) {
					h.NoteFound(&left[i].Fault)
				}
				left, numbers = slices.Delete(left, i, i+1), slices.Delete(numbers, i, i+1)
			}
			if !slices.Equal(order, tc.order) {
				t.Errorf("got %v, want %v", order, tc.order)
			}
		})
	}
	if i := NewHistory().Next(nil); i != -1 {
		t.Errorf("of nothing, the next is %d", i)
	}
}
