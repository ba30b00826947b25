// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// moreAllocations is the accepted ratio between an event's current and recorded number of
// allocations. A few allocations depend on how full maps and buffers are.
const moreAllocations = 1.1

// gate fails the test if the manager's requests, writes or allocations per event exceed their
// limits. It ignores durations, which depend on the machine and its load.
func (r *report) gate(t *testing.T) {
	t.Helper()
	for _, problem := range r.regressions(recorded(t, r.Scale)) {
		t.Error(problem)
	}
}

// regressions returns a line for each count that misses its target, and for each event that takes
// more allocations than in the earlier run `before`.
func (r *report) regressions(before *report) []string {
	var problems []string
	allocations := map[string]float64{}
	for _, f := range before.Figures {
		allocations[f.Key] = f.Allocations
	}
	for i := range r.Figures {
		f := &r.Figures[i]
		if f.Unit == "" && !f.reached() {
			problems = append(problems, fmt.Sprintf("%s: %s is %g, to reach: %s", f.Key, f.What, f.Value, f.target()))
		}
		if was := allocations[f.Key]; was > 0 && f.Allocations > was*moreAllocations {
			problems = append(problems, fmt.Sprintf("%s: %s takes %g allocations, %g as recorded", f.Key, f.What, f.Allocations, was))
		}
	}
	return problems
}

// recorded returns the recorded run for the given cluster size, or an empty run if there is none.
func recorded(t *testing.T, scale string) *report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(framework.Root(), "test", "scale", "results", scale+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return &report{}
	}
	if err != nil {
		t.Fatal(err)
	}
	before := &report{}
	if err := json.Unmarshal(text, before); err != nil {
		t.Fatal(err)
	}
	return before
}

func TestRegressions(t *testing.T) {
	before := &report{Figures: []figure{{Key: "event", Allocations: 20}, {Key: "gone", Allocations: 5}}}
	now := &report{Figures: []figure{
		{Key: "event", What: "an event", Value: 9000, Unit: "ns", Allocations: 23},
		{Key: "new", What: "another event", Allocations: 1000},
		{Key: "writes", What: "writes", Value: 2, Most: new(1.0)},
		{Key: "status", What: "writes of the status", Value: 5, Limit: 6, Within: 1},
		{Key: "slow", What: "it takes", Value: 99, Unit: "s", Most: new(1.0)},
	}}
	want := []string{"event: an event takes 23 allocations, 20 as recorded", "writes: writes is 2, to reach: at most 1 "}
	if diff := cmp.Diff(want, now.regressions(before)); diff != "" {
		t.Errorf("regressions (-want +got):\n%s", diff)
	}
	now.Figures = nil
	if problems := now.regressions(before); len(problems) > 0 {
		t.Errorf("a run without figures has regressions: %q", problems)
	}
}
