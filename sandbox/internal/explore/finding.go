// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Finding describes a fault from which the operator does not recover, or a problem that occurs
// without a fault. It can be saved to a file and replayed.
type Finding struct {
	results.Evidence `json:",inline"`
	// ID is the ID of the fault before shrinking, which removes workload steps and may renumber the
	// steps in Fault.
	ID       string             `json:"id,omitempty"`
	Workload *workload.Workload `json:"workload"`
	// Fault is nil if the problem occurs in runs without a fault.
	Fault    *faults.Fault   `json:"fault,omitempty"`
	Problems []judge.Problem `json:"problems"`
	// After is the time from the start of the exploration until the finding, in seconds.
	After float64 `json:"after,omitempty"`
	// Shrunk is set once shrinking is complete, so that every remaining workload step is needed.
	// Shrinking describes the result of shrinking to users.
	Shrunk    bool   `json:"shrunk,omitempty"`
	Shrinking string `json:"shrinking,omitempty"`
}

// Confirmed implements [results.Finding]. A finding is confirmed if it was reproduced, resembles a
// confirmed finding, or is proved by a single run.
func (f *Finding) Confirmed() bool {
	return f.Repeated > 0 || f.Like != "" || slices.ContainsFunc(f.Problems, func(p judge.Problem) bool { return p.Certain() })
}

// Case implements [results.Finding] and returns f.ID.
func (f *Finding) Case() string { return f.ID }

// Rank implements [results.Finding]. Findings are sorted by the oracle of their first problem (the
// check that detected it), then by the number of workload steps.
func (f *Finding) Rank() []int { return []int{judge.Rank(f.Problems[0].Oracle), len(f.Workload.Steps)} }

// Details implements [results.Finding] and returns the lines of all problems.
func (f *Finding) Details() []string {
	var lines []string
	for _, p := range f.Problems {
		lines = append(append(lines, string(p.Oracle)+":"), p.Lines...)
	}
	return lines
}

// Title implements [results.Finding] and summarizes the first problem.
func (f *Finding) Title() string { return f.Problems[0].Summary() }

// Where implements [results.Finding] and describes the fault.
func (f *Finding) Where() string {
	if f.Fault == nil {
		return "without any fault"
	}
	return f.Fault.Describe(f.Workload)
}

// Kind implements [results.Finding]. The kind is equal for findings that show the same problem,
// regardless of the fault.
func (f *Finding) Kind() string { return f.Problems[0].Shows()[0] }

// possible returns an error if the finding's fault requires several concurrent processes of the
// operator, but `alone` is set because only a single process can run. `asked` is set if the reason
// is that users have chosen the machine's network for the operator.
func (f *Finding) possible(alone, asked bool) error {
	if f.Fault == nil || !f.Fault.Effects().TwoProcesses || !alone {
		return nil
	}
	instead := "permit user namespaces on this machine, or play it as root"
	if asked {
		instead = "play it without --host-network, and without hostNetwork in its workload"
	}
	return fmt.Errorf("the fault %s needs two processes of the operator at once, which cannot have the network of this machine, as one may need the port of the other: %s", f.Fault.Kind, instead)
}

// Same reports whether `again`, the finding of a replay, shows the same problem as the original
// finding.
func (f *Finding) Same(again *Finding) bool {
	return (&judge.Outcome{Reached: true, Problems: again.Problems}).DifferentFrom(f.Problems) == ""
}

// subject is the operator under test and its workload. Its methods create findings.
type subject struct {
	command  []string
	workload *workload.Workload
	// flags holds the values of the flags that determine which runs count as findings.
	flags results.Flags
}

// newFinding returns a finding with the problems of a run. It removes the unneeded steps at the end
// of the workload: the steps after both the fault and the last problem.
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
	found.ID, found.Flags = found.id(), s.flags
	return found
}

// undisturbed is the ID of the finding with the problems that occur in runs without a fault.
const undisturbed = "undisturbed"

// id returns the fault's ID, or undisturbed if there is no fault.
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
