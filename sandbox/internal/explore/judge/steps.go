// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"slices"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// StepEnd is the state of a cluster in a step of a run with a fault, compared with the baseline.
type StepEnd struct {
	Step int
	// Quiet is set if the cluster is quiet.
	Quiet bool
	// Unwatched are the resources that the operator should watch, and does not.
	Unwatched []string
	// Differences are the differences of the objects from the baseline.
	Differences []state.Difference
}

// AsBaseline reports whether the step may end: the cluster is quiet, and as in the baseline.
func (e *StepEnd) AsBaseline() bool {
	return e.Quiet && len(e.Unwatched) == 0 && len(e.Differences) == 0
}

// Problems returns the problems of a step that has not ended as in the baseline within its limit.
// Missing watches and other objects are reported first, as continuing writes may be only a
// consequence of them. standing selects the differences in objects that do not keep changing,
// and restless describes the changes; both are for a cluster that is not quiet.
func (e *StepEnd) Problems(standing func([]state.Difference) []state.Difference, restless func() []string) []Problem {
	if len(e.Unwatched) > 0 {
		return []Problem{e.problem(NotReached, fmt.Sprintf("the operator does not watch %v any more", e.Unwatched))}
	}
	var problems []Problem
	differences := e.Differences
	if !e.Quiet {
		differences = standing(differences)
	}
	if len(differences) > 0 {
		problems = append(problems, e.problem(OtherState, state.Lines(differences)...))
	}
	if !e.Quiet {
		problems = append(problems, e.problem(NotAtRest, restless()...))
	}
	return problems
}

func (e *StepEnd) problem(oracle Oracle, lines ...string) Problem {
	return Problem{Oracle: oracle, Step: e.Step, Lines: lines}
}

// FailedStep returns the problem of a step that failed in a run with a fault, because of a
// condition that did not come true (waited) or for another reason. It is nil while the fault
// hides from the operator the objects that the condition depends on.
func FailedStep(f *faults.Fault, step int, waited bool, reason string) *Problem {
	if waited && f.Lasting(step) {
		return nil
	}
	return &Problem{Oracle: NotReached, Step: step, Lines: []string{reason}}
}

// LostWrites returns the problem of writes of another client that are lost, a line each; nil if
// none is.
func LostWrites(step int, lines []string) []Problem {
	if len(lines) == 0 {
		return nil
	}
	return []Problem{{Oracle: OtherState, Step: step, Lines: lines}}
}

// Unjudgeable returns the reason, for users, why a run with a fault says nothing about the
// operator: it has a problem, and the fault was not reached, so that the machine may have been
// too slow. It is empty for other runs, and for a problem that is certain.
func (o *Outcome) Unjudgeable() string {
	certain := slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.Certain() })
	if o.Reached || len(o.Problems) == 0 || certain {
		return ""
	}
	return unreached + ", and yet " + o.Problems[0].Summary()
}

const unreached = "the fault was not reached"

// DifferentFrom describes how the second run of a fault differs from the first, which had the
// problems before; empty if both show the same problem, and the fault was reached in the second.
func (o *Outcome) DifferentFrom(before []Problem) string {
	reason := ""
	if !o.Reached {
		reason = unreached
	}
	if len(o.Problems) == 0 {
		return cmp.Or(reason, "all was well")
	}
	if reason != "" {
		return reason + ", and yet " + o.Problems[0].Summary()
	}
	for i := range o.Problems {
		for j := range before {
			if slices.ContainsFunc(o.Problems[i].Shows(), func(show string) bool { return slices.Contains(before[j].Shows(), show) }) {
				return ""
			}
		}
	}
	return "it was " + o.Problems[0].Summary()
}
