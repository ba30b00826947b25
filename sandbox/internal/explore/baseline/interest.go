// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import "strings"

// Missed says how promising it is that an operator that sees nothing of a resource from one
// step on until another sees what users want at the end, and not what they wanted in
// between: most if both steps change the same field.
func (b *Baseline) Missed(step, until int, resource string) int {
	missed := 0
	for edit := range b.Steps[step].Edited {
		main, _, _ := strings.Cut(edit, " ")
		switch {
		case main != resource:
		case b.Steps[until].Edited[edit]:
			return 16
		case len(b.Steps[until].Edited) > 0:
			missed = 4
		}
	}
	return missed
}

// Interest says how promising the events of a resource are: most for objects that users write and
// the operator reads, much for objects that the operator makes, and little for the rest.
func (b *Baseline) Interest(step int, resource string) int {
	for key := range b.Roots {
		if main, _, _ := strings.Cut(key, " "); main == resource {
			return 12
		}
	}
	interest := 0
	for i := range b.Steps[step].Writes {
		if w := &b.Steps[step].Writes[i]; w.Resource == resource && (w.Verb == "create" || w.Verb == "delete") {
			interest = 8
		}
	}
	// Most operators wait for their state.
	if resource == "pods" || strings.HasSuffix(resource, ".apps") {
		interest += 3
	}
	return interest
}

// Expected says how promising it is that what an operator expects of a resource expires:
// most if it makes objects of it, as it would make them again.
func (b *Baseline) Expected(step int, resource string) int {
	expected := 0
	for i := range b.Steps[step].Writes {
		if w := &b.Steps[step].Writes[i]; w.Resource == resource {
			expected = max(expected, map[string]int{"create": 12, "delete": 8}[w.Verb])
		}
	}
	return expected
}
