// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// TestStepEnds checks that a step ends when the cluster matches the baseline. If it never does,
// problems are reported in this order: a missing watch, differing objects, continuing changes.
func TestStepEnds(t *testing.T) {
	moves := state.Difference{Object: "configmaps default/moves", Text: "it is missing"}
	stays := state.Difference{Object: "configmaps default/stays", Text: "it is missing"}
	standing := func(all []state.Difference) []state.Difference {
		return slices.DeleteFunc(slices.Clone(all), func(d state.Difference) bool { return d == moves })
	}
	for _, tc := range []struct {
		name string
		end  StepEnd
		is   bool
		want []string
	}{
		{"as in the baseline", StepEnd{Quiet: true}, true, nil},
		{"a watch is missing", StepEnd{Quiet: true, Unwatched: []string{"pods"}, Differences: []state.Difference{stays}}, false, []string{"not reached: the operator does not watch [pods] any more"}},
		{"other objects", StepEnd{Quiet: true, Differences: []state.Difference{moves, stays}}, false, []string{"other state: configmaps default/moves: it is missing (and 1 more)"}},
		{"it goes on", StepEnd{}, false, []string{"not at rest: on and on"}},
		{"it goes on, and an object is missing", StepEnd{Differences: []state.Difference{moves, stays}}, false, []string{"other state: configmaps default/stays: it is missing", "not at rest: on and on"}},
		{"it goes on with the object that differs", StepEnd{Differences: []state.Difference{moves}}, false, []string{"not at rest: on and on"}},
	} {
		tc.end.Step = 3
		if is := tc.end.AsBaseline(); is != tc.is {
			t.Errorf("%s: it may end: %t", tc.name, is)
		}
		var got []string
		for _, p := range tc.end.Problems(standing, func() []string { return []string{"on and on"} }) {
			got = append(got, p.Summary())
			if p.Step != 3 {
				t.Errorf("%s: %s is of step %d", tc.name, p.Summary(), p.Step)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestFailedSteps checks that a condition that never becomes true is a problem, unless events are
// held back. Any other failure of a step is always a problem.
func TestFailedSteps(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fault  faults.Fault
		step   int
		waited bool
		is     bool
	}{
		{"a wait while events are held back", faults.Fault{Kind: "Freeze", Step: 1, Until: 3}, 2, true, false},
		{"a wait in the last step of that", faults.Fault{Kind: "Freeze", Step: 1, Until: 3}, 3, true, true},
		{"a wait before that", faults.Fault{Kind: "Freeze", Step: 2, Until: 3}, 1, true, true},
		{"a wait after an error", faults.Fault{Kind: "ServerError", Step: 1, Until: 1}, 1, true, true},
		{"a command that fails while events are held back", faults.Fault{Kind: "Freeze", Step: 1, Until: 3}, 2, false, true},
	} {
		if p := FailedStep(&tc.fault, tc.step, tc.waited, "no"); (p != nil) != tc.is || p != nil && (p.Oracle != NotReached || p.Step != tc.step) {
			t.Errorf("%s: %v", tc.name, p)
		}
	}
	if LostWrites(1, nil) != nil || len(LostWrites(1, []string{"lost"})) != 1 {
		t.Error("what another client wrote is lost, or not")
	}
}

// TestRunsAreCompared checks that a problem in a run that did not reach the fault is judged only if
// the problem is certain, and that a second run confirms a finding only if it reaches the fault.
func TestRunsAreCompared(t *testing.T) {
	missing := Problem{Oracle: OtherState, Lines: []string{"configmaps default/a: it is missing"}}
	other := Problem{Oracle: OtherState, Lines: []string{"secrets default/b: data.n is 1, not 2"}}
	panics := Problem{Oracle: Failed, Lines: []string{"panic: oh"}}
	for _, tc := range []struct {
		name             string
		o                Outcome
		unjudged, second string
	}{
		{"the same", Outcome{Reached: true, Problems: []Problem{other, missing}}, "", ""},
		{"something else", Outcome{Reached: true, Problems: []Problem{other}}, "", "it was other state: secrets default/b: data.n is 1, not 2"},
		{"nothing", Outcome{Reached: true}, "", "all was well"},
		{"no fault", Outcome{}, "", "the fault was not reached"},
		{
			"the same without the fault", Outcome{Problems: []Problem{missing}},
			"the fault was not reached, and yet other state: configmaps default/a: it is missing",
			"the fault was not reached, and yet other state: configmaps default/a: it is missing",
		},
		{"what is certain without the fault", Outcome{Problems: []Problem{panics}}, "", "the fault was not reached, and yet operator failed: panic: oh"},
	} {
		if got := tc.o.Unjudgeable(); got != tc.unjudged {
			t.Errorf("%s: it is not judged as %q, want %q", tc.name, got, tc.unjudged)
		}
		if got := tc.o.DifferentFrom([]Problem{missing}); got != tc.second {
			t.Errorf("%s: the second time %q, want %q", tc.name, got, tc.second)
		}
	}
}
