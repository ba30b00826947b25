// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import "strings"

// Missed scores a fault that hides the changes of a resource from the operator, from the step
// `step` until the later step `until`. Because of such a fault, the operator misses an intermediate
// state. The score is highest if both steps change the same field.
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

// Interest returns a score of a resource's events as targets of faults in a step. The score is
// highest for resources of objects that users create, high for resources that the operator creates
// or deletes, and low for other resources.
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
	// Faults in these events are more likely to reveal problems, because most operators wait for
	// the status of pods and of workload resources such as Deployments.
	if resource == "pods" || strings.HasSuffix(resource, ".apps") {
		interest += 3
	}
	return interest
}

// Expected scores a fault that holds back a resource's events until the operator stops waiting for
// these events. The score is highest if the operator creates objects of the resource, because it
// may create the same objects twice.
func (b *Baseline) Expected(step int, resource string) int {
	expected := 0
	for i := range b.Steps[step].Writes {
		if w := &b.Steps[step].Writes[i]; w.Resource == resource {
			expected = max(expected, map[string]int{"create": 12, "delete": 8}[w.Verb])
		}
	}
	return expected
}
