// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import "strings"

// Missed scores a fault that hides a resource from the operator from a step until a later step:
// the operator sees the final desired state, but not the state in between. The score is highest
// if both steps change the same field.
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

// Interest scores the events of a resource as targets of faults: highest for objects that users
// write and the operator watches, high for objects that the operator creates, and low for
// others.
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
	// Most operators wait for the status of pods and workloads.
	if resource == "pods" || strings.HasSuffix(resource, ".apps") {
		interest += 3
	}
	return interest
}

// Expected scores the fault that lets expectations about a resource time out: highest if the
// operator creates such objects, as it would create them twice.
func (b *Baseline) Expected(step int, resource string) int {
	expected := 0
	for i := range b.Steps[step].Writes {
		if w := &b.Steps[step].Writes[i]; w.Resource == resource {
			expected = max(expected, map[string]int{"create": 12, "delete": 8}[w.Verb])
		}
	}
	return expected
}
