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

// StepEnd holds the comparison of the cluster with the baseline at the end of a step, in a run with
// a fault.
type StepEnd struct {
	Step int
	// Quiet is set if nothing has changed in the cluster for the step's quiet time, after which a
	// step may end.
	Quiet bool
	// Unwatched lists the resources that the operator watches after any of its starts, according to
	// the baseline, but does not watch now.
	Unwatched []string
	// Differences lists the deviations of objects from the baseline.
	Differences []state.Difference
}

// AsBaseline reports whether the step may end, because the cluster is quiet and matches the
// baseline.
func (e *StepEnd) AsBaseline() bool {
	return e.Quiet && len(e.Unwatched) == 0 && len(e.Differences) == 0
}

// Problems returns the problems of a step whose end does not match the baseline within the time
// limit. Missing watches and differing objects come first, because the operator's further writes
// may be only a consequence of them. If the cluster is not quiet, `standing` selects the
// differences in objects that no longer change, and `restless` describes the objects that still
// change.
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

// FailedStep returns the problem of a failed step in a run with a fault. `waited` is set if the
// step failed because its condition did not become true. If the fault hides the cluster state from
// the operator, such a failure is not a problem, and FailedStep returns nil.
func FailedStep(f *faults.Fault, step int, waited bool, reason string) *Problem {
	if waited && f.Lasting(step) {
		return nil
	}
	return &Problem{Oracle: NotReached, Step: step, Lines: []string{reason}}
}

// LostWrites returns a problem with the given lines, which describe lost writes of another client.
// It returns nil if there are no lines.
func LostWrites(step int, lines []string) []Problem {
	if len(lines) == 0 {
		return nil
	}
	return []Problem{{Oracle: OtherState, Step: step, Lines: lines}}
}

// Unjudgeable explains to users why a run with a fault proves nothing about the operator: it has a
// problem although the fault was not reached, so the machine may have been too slow. The result is
// empty for other runs, and if a problem is certain (see Problem.Certain).
func (o *Outcome) Unjudgeable() string {
	certain := slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.Certain() })
	if o.Reached || len(o.Problems) == 0 || certain {
		return ""
	}
	return unreached + ", and yet " + o.Problems[0].Summary()
}

const unreached = "the fault was not reached"

// Decides reports whether the receiver, the second run with a fault, confirms or refutes the
// problems of the first run, `before`. It returns false if the second run does not reach the fault,
// or if it has another problem. For example, the operator may not have been restarted in time on a
// busy machine. A problem that a single run proves always decides.
func (o *Outcome) Decides(before []Problem) bool {
	if slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.Certain() }) {
		return true
	}
	return o.Reached && (len(o.Problems) == 0 || o.DifferentFrom(before) == "")
}

// DifferentFrom describes how a fault's second run (the receiver) differs from the first run, whose
// problems are `before`. It is empty if the second run reached the fault and shows the same
// problem.
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
