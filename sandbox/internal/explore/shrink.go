// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// toShrink returns the confirmed findings whose workload may contain steps that are not needed. It
// excludes findings about differences between baseline runs, which a single run cannot reproduce.
func toShrink(findings []*Finding) []*Finding {
	var long []*Finding
	confirmed, _ := (&results.Result[*Finding]{Findings: findings}).Groups()
	for _, g := range confirmed {
		if f := g.Finding; !f.Shrunk && f.Problems[0].Oracle != judge.OtherEnds && len(f.Workload.Steps) > 1 {
			long = append(long, f)
		}
	}
	return long
}

// shrink removes unneeded steps from the findings' workloads, until ctx is done.
func (q *queue) shrink(ctx context.Context) error {
	var shrinking errgroup.Group
	shrinking.SetLimit(max(1, q.plan.Jobs))
	for i, f := range toShrink(q.book.Findings) {
		shrinking.Go(func() error {
			s := shrinker{subject: q.explorer.subject(), base: q.base, play: func(w *workload.Workload, f *faults.Fault, b *baseline.Baseline) (*judge.Outcome, error) {
				shorter := *q.explorer
				shorter.Workload = w
				return shorter.play(ctx, fmt.Sprintf("shrink-%d", i+1), f, b, setting{})
			}}
			s.shrink(ctx, f)
			q.mu.Lock()
			defer q.mu.Unlock()
			fmt.Fprintf(q.plan.Progress, "%s, %s: the workload: %s\n", f.Title(), f.Where(), f.Shrinking)
			return q.book.Save(f)
		})
	}
	return shrinking.Wait()
}

// shrinker removes unneeded steps from the workloads of a subject's findings.
type shrinker struct {
	subject subject
	// base is the baseline of the complete workload.
	base *baseline.Baseline
	// play runs a shorter workload with a fault, or without a fault if the fault is nil.
	play func(*workload.Workload, *faults.Fault, *baseline.Baseline) (*judge.Outcome, error)
}

// shrink removes the workload steps that are not needed to reproduce a finding. It first tries to
// remove all steps to which the fault does not refer, then each of these steps individually.
func (s *shrinker) shrink(ctx context.Context, f *Finding) {
	whole := len(f.Workload.Steps)
	try := func(steps []int) bool {
		if len(steps) == 0 || ctx.Err() != nil {
			return false
		}
		shorter := s.playShorter(f.without(steps), f.Kind())
		if shorter == nil {
			return false
		}
		shorter.ID, shorter.After, shorter.Like, shorter.Tries, shorter.Repeated = f.ID, f.After, f.Like, f.Tries+1, f.Repeated+1
		*f = *shorter
		return true
	}
	if others := f.unnamed(); len(others) < 2 || !try(others) {
		for _, step := range slices.Backward(others) {
			try([]int{step})
		}
	}
	left := len(f.Workload.Steps)
	f.Shrunk = ctx.Err() == nil
	switch {
	case f.Shrunk && left == whole:
		f.Shrinking = "each of its steps is needed"
	case f.Shrunk:
		f.Shrinking = fmt.Sprintf("%d of %d steps were left out, as they are not needed", whole-left, whole)
	case left < whole:
		f.Shrinking = fmt.Sprintf("%d of %d steps were left out, and then time ran out: perhaps more are not needed", whole-left, whole)
	default:
		f.Shrinking = "perhaps not all of its steps are needed: there was no time to find out"
	}
}

// playShorter runs a finding's shortened workload, first without a fault and then with the
// finding's fault. It returns the new finding, or nil if a run fails or no problem of the given
// kind occurs.
func (s *shrinker) playShorter(f *Finding, kind string) *Finding {
	undisturbed, err := s.play(f.Workload, nil, nil)
	if err != nil {
		return nil // The remaining steps depend on a removed step.
	}
	base, err := baseline.Learn(&undisturbed.Record, &undisturbed.Record, judge.FirstLines(undisturbed), s.subject.flags.Quiet.Duration, s.subject.workload.Unjudged, s.base)
	if err != nil {
		return nil
	}
	o := undisturbed
	if f.Fault != nil {
		if o, err = s.play(f.Workload, f.Fault, base); err != nil {
			return nil
		}
	}
	if len(o.Problems) == 0 {
		return nil
	}
	shorter := s.subject
	shorter.workload = f.Workload
	if found := shorter.newFinding(f.Fault, o, base); found.Kind() == kind {
		return found
	}
	return nil
}

// momentStep is the prefix of a Fault.AsOf (the time to which stale lists go back) that refers to
// the beginning of a step. The step number follows.
const momentStep = "step "

// unnamed returns the numbers of the steps to which the finding's fault does not refer.
func (f *Finding) unnamed() []int {
	named := map[int]bool{}
	if f.Fault != nil {
		named[f.Fault.Step], named[f.Fault.Until] = true, true
		if text, is := strings.CutPrefix(f.Fault.AsOf, momentStep); is {
			step, _ := strconv.Atoi(text)
			named[step] = true
		}
	}
	var steps []int
	for step := 1; step <= len(f.Workload.Steps); step++ {
		if !named[step] {
			steps = append(steps, step)
		}
	}
	return steps
}

// without returns a copy of a finding whose workload lacks the given steps. It adjusts the step
// numbers in the finding's fault, which must not refer to a removed step.
func (f *Finding) without(steps []int) *Finding {
	renumbered := func(step int) int {
		now := step
		for _, left := range steps {
			if left < step {
				now--
			}
		}
		return now
	}
	shorter, workload := *f, *f.Workload
	workload.Steps = nil
	for i := range f.Workload.Steps {
		if !slices.Contains(steps, i+1) {
			workload.Steps = append(workload.Steps, f.Workload.Steps[i])
		}
	}
	shorter.Workload = &workload
	if f.Fault != nil {
		fault := *f.Fault
		if text, is := strings.CutPrefix(fault.AsOf, momentStep); is {
			step, _ := strconv.Atoi(text)
			fault.AsOf = momentStep + strconv.Itoa(renumbered(step))
		}
		fault.Step, fault.Until = renumbered(fault.Step), renumbered(fault.Until)
		shorter.Fault = &fault
	}
	return &shorter
}
