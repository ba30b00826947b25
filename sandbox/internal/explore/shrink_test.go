// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

func TestWithoutSteps(t *testing.T) {
	steps := func(names ...string) []workload.Step {
		var all []workload.Step
		for _, name := range names {
			all = append(all, workload.Step{Name: name})
		}
		return all
	}
	for _, tc := range []struct {
		name    string
		fault   *faults.Fault
		unnamed []int
		without []int
		steps   []string
		want    *faults.Fault
	}{
		{name: "without a fault", unnamed: []int{1, 2, 3, 4, 5}, without: []int{2, 4}, steps: []string{"a", "c", "e"}},
		{
			name: "an earlier and a later one", fault: &faults.Fault{Kind: "CrashAfter", Step: 3, Until: 3}, unnamed: []int{1, 2, 4, 5}, without: []int{1, 5},
			steps: []string{"b", "c", "d"}, want: &faults.Fault{Kind: "CrashAfter", Step: 2, Until: 2},
		},
		{
			name: "one in between", fault: &faults.Fault{Kind: "Freeze", Step: 2, Until: 5}, unnamed: []int{1, 3, 4}, without: []int{1, 3, 4},
			steps: []string{"b", "e"}, want: &faults.Fault{Kind: "Freeze", Step: 1, Until: 2},
		},
		{
			name: "a list as of a step", fault: &faults.Fault{Kind: "StaleStart", Step: 5, Until: 5, AsOf: "step 3"}, unnamed: []int{1, 2, 4}, without: []int{2, 4},
			steps: []string{"a", "c", "e"}, want: &faults.Fault{Kind: "StaleStart", Step: 3, Until: 3, AsOf: "step 2"},
		},
		{
			name: "at the start", fault: &faults.Fault{Kind: "CrashAfter"}, unnamed: []int{1, 2, 3, 4, 5}, without: []int{1},
			steps: []string{"b", "c", "d", "e"}, want: &faults.Fault{Kind: "CrashAfter"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &Finding{Workload: &workload.Workload{Steps: steps("a", "b", "c", "d", "e")}, Fault: tc.fault}
			if unnamed := f.unnamed(); !slices.Equal(unnamed, tc.unnamed) {
				t.Errorf("the steps that it does not name are %v, want %v", unnamed, tc.unnamed)
			}
			shorter := f.without(tc.without)
			var names []string
			for _, s := range shorter.Workload.Steps {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, tc.steps) || (tc.want == nil) != (shorter.Fault == nil) || tc.want != nil && *shorter.Fault != *tc.want {
				t.Errorf("got %q with %+v, want %q with %+v", names, shorter.Fault, tc.steps, tc.want)
			}
			if len(f.Workload.Steps) != 5 {
				t.Errorf("the finding itself has %d steps now", len(f.Workload.Steps))
			}
		})
	}
}

// TestShrink checks that unneeded steps are removed, either all together or one by one.
func TestShrink(t *testing.T) {
	broken := judge.Problem{Oracle: judge.Broken, Lines: []string{"two leaders"}}
	for _, tc := range []struct {
		name      string
		needs     []string
		fails     bool
		steps     []string
		shrinking string
	}{
		{name: "one step is needed", needs: []string{"b"}, steps: []string{"b"}, shrinking: "2 of 3 steps were left out, as they are not needed"},
		{name: "all steps are needed", needs: []string{"a", "b", "c"}, steps: []string{"a", "b", "c"}, shrinking: "each of its steps is needed"},
		{name: "shorter workloads fail", needs: []string{"b"}, fails: true, steps: []string{"a", "b", "c"}, shrinking: "each of its steps is needed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole := &workload.Workload{Steps: []workload.Step{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
			names := func(w *workload.Workload) (all []string) {
				for _, step := range w.Steps {
					all = append(all, step.Name)
				}
				return all
			}
			s := shrinker{subject: subject{workload: whole}, play: func(w *workload.Workload, _ *faults.Fault, _ *baseline.Baseline) (*judge.Outcome, error) {
				if tc.fails {
					return nil, errors.New("a step needs another")
				}
				o := &judge.Outcome{}
				o.Steps = make([]observe.StepOutcome, len(w.Steps)+1)
				for _, needed := range tc.needs {
					if !slices.Contains(names(w), needed) {
						return o, nil
					}
				}
				problem := broken
				problem.Step = len(w.Steps)
				o.Problems = []judge.Problem{problem}
				return o, nil
			}}
			f := &Finding{Workload: whole, Problems: []judge.Problem{broken}}
			s.shrink(t.Context(), f)
			if got := names(f.Workload); !slices.Equal(got, tc.steps) || f.Shrinking != tc.shrinking || !f.Shrunk {
				t.Errorf("%q is left: %s", got, f.Shrinking)
			}
		})
	}
}
