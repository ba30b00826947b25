// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// TestProblemsOfUndisturbedRuns checks that a problem of any baseline run is reported, and that the
// problems of an earlier finding are kept.
func TestProblemsOfUndisturbedRuns(t *testing.T) {
	race := judge.Problem{Oracle: judge.Failed, Lines: []string{"WARNING: DATA RACE"}, At: time.Now()}
	broken := judge.Problem{Oracle: judge.Broken, Lines: []string{"two leaders"}}
	one, two := &judge.Outcome{Problems: []judge.Problem{broken}}, &judge.Outcome{Problems: []judge.Problem{race, broken}}
	if o := withProblems([]*judge.Outcome{{}, two}); len(o.Problems) != 2 || o.Problems[0].At.IsZero() {
		t.Errorf("of the second run: %v", o.Problems)
	}
	o := withProblems([]*judge.Outcome{one, two})
	if len(o.Problems) != 2 || !o.Problems[1].At.IsZero() || len(one.Problems) != 1 {
		t.Errorf("of both: %v", o.Problems)
	}
	e := subject{workload: &workload.Workload{Steps: []workload.Step{{}}}}
	if e.foundUndisturbed(&judge.Outcome{}, nil, nil) != nil {
		t.Error("nothing is wrong, and that is found")
	}
	before := e.foundUndisturbed(&judge.Outcome{Problems: []judge.Problem{broken}}, nil, nil)
	if e.foundUndisturbed(one, nil, []*Finding{before}) != nil {
		t.Error("what was found before is found again")
	}
	if f := e.foundUndisturbed(&judge.Outcome{Problems: []judge.Problem{race}}, nil, []*Finding{before}); f == nil || !slices.ContainsFunc(f.Problems, broken.Same) || !slices.ContainsFunc(f.Problems, race.Same) {
		t.Errorf("found %v", f)
	}
}
