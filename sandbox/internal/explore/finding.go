// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Finding is a fault that the operator does not recover from, or a problem without a fault.
// Saved as a file, it can be replayed.
type Finding struct {
	results.Evidence `json:",inline"`
	// ID is the ID of the fault as it was first played; shrinking may have renumbered the steps of
	// the fault since.
	ID       string             `json:"id,omitempty"`
	Workload *workload.Workload `json:"workload"`
	// Fault is nil if the problem occurs in runs without a fault.
	Fault    *faults.Fault   `json:"fault,omitempty"`
	Problems []judge.Problem `json:"problems"`
	// After is the number of seconds from the start of the exploration to the finding.
	After float64 `json:"after,omitempty"`
	// Shrunk is set when each remaining step of the workload is known to be needed. Shrinking
	// describes the result of leaving out steps.
	Shrunk    bool   `json:"shrunk,omitempty"`
	Shrinking string `json:"shrinking,omitempty"`
}

// Confirmed implements [results.Finding].
func (f *Finding) Confirmed() bool {
	return f.Repeated > 0 || f.Like != "" || slices.ContainsFunc(f.Problems, func(p judge.Problem) bool { return p.Certain() })
}

// Case implements [results.Finding].
func (f *Finding) Case() string { return f.ID }

// Rank implements [results.Finding]: the shortest workload comes first.
func (f *Finding) Rank() []int { return []int{judge.Rank(f.Problems[0].Oracle), len(f.Workload.Steps)} }

// Details implements [results.Finding].
func (f *Finding) Details() []string {
	var lines []string
	for _, p := range f.Problems {
		lines = append(append(lines, string(p.Oracle)+":"), p.Lines...)
	}
	return lines
}

// Title implements [results.Finding].
func (f *Finding) Title() string { return f.Problems[0].Summary() }

// Where implements [results.Finding]: it describes the fault.
func (f *Finding) Where() string {
	if f.Fault == nil {
		return "without any fault"
	}
	return f.Fault.Describe(f.Workload)
}

// Kind implements [results.Finding]: findings of a kind show the same problem, with whatever
// fault.
func (f *Finding) Kind() string { return f.Problems[0].Shows()[0] }

// subject is the tested operator with its workload, and makes findings about them.
type subject struct {
	command  []string
	workload *workload.Workload
	// quiet is the quiet time of baseline runs.
	quiet time.Duration
}

// newFinding returns a finding with the problems of a run. The steps after the last step with a
// problem are left out of the workload.
func (s subject) newFinding(f *faults.Fault, o *judge.Outcome, b *baseline.Baseline) *Finding {
	slices.SortStableFunc(o.Problems, func(a, b judge.Problem) int { return cmp.Compare(judge.Rank(a.Oracle), judge.Rank(b.Oracle)) })
	last := 0
	for _, p := range o.Problems {
		last = max(last, p.Step)
	}
	if f != nil {
		last = max(last, f.Step, f.Until)
	}
	w := *s.workload
	w.Steps = w.Steps[:min(max(last, 1), len(w.Steps))]
	found := &Finding{Evidence: results.NewEvidence(s.command, judge.Timeline(o, b.LockKeys()), o.Output), Workload: &w, Fault: f, Problems: o.Problems}
	found.ID = found.id()
	return found
}

// undisturbed is the ID of a finding without a fault.
const undisturbed = "undisturbed"

// id returns the ID of the fault, which is also the ID of the finding.
func (f *Finding) id() string {
	if f.Fault == nil {
		return undisturbed
	}
	return f.Fault.ID()
}

func parseFinding(text []byte) (*Finding, error) {
	f := &Finding{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, errors.New(words.OneLine(err.Error()))
	}
	if f.Workload == nil || len(f.Command) == 0 || len(f.Problems) == 0 {
		return nil, errors.New("it has no command, no workload or no problems")
	}
	if err := f.Workload.Compile(); err != nil {
		return nil, err
	}
	if f.Fault != nil {
		if !f.Fault.Kind.Known() {
			return nil, fmt.Errorf("there is no fault %q", f.Fault.Kind)
		}
		f.Fault.Until = max(f.Fault.Until, f.Fault.Step)
	}
	if f.ID == "" {
		f.ID = f.id()
	}
	return f, nil
}
