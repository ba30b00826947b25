// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// learnBaseline runs the workload twice without a fault, to learn the baseline. If the two runs end
// with different objects, it doubles the quiet time and repeats both runs. The reason is that a
// busy machine may have stalled the operator for longer than the quiet time. If the desired state
// differs between the two runs, it adds a third run. The returned outcome contains the problems of
// all these runs.
func (e *Explorer) learnBaseline(ctx context.Context, jobs int, progress io.Writer) (*baseline.Baseline, *judge.Outcome, error) {
	if err := e.Testbeds.Prepare(ctx, progress); err != nil {
		return nil, nil, err
	}
	fmt.Fprintln(progress, "Learning from two undisturbed runs.")
	for quiet := e.Limits.Quiet; ; quiet *= 2 {
		runs, err := e.playPair(ctx, jobs, quiet)
		if err != nil {
			return nil, nil, err
		}
		base, err := baseline.Learn(&runs[0].Record, &runs[1].Record, judge.FirstLines(runs...), quiet, e.Workload.Unjudged, nil)
		if err != nil {
			return nil, nil, err
		}
		base.Programs = e.Workload.ApplicationPrograms()
		if others := base.OtherObjects(&runs[0].Record, &runs[1].Record); len(others) > 0 && quiet < e.Limits.MostQuiet() {
			fmt.Fprintf(progress, "They end with different objects, such as %s: learning again, with a quiet time of %s.\n", others[0], 2*quiet)
			continue
		}
		return e.judgeBaseline(ctx, base, runs, quiet, progress)
	}
}

// playPair runs the workload twice without a fault. If several jobs are allowed, the two runs
// overlap, like later runs with faults. The second run is always a step behind the first run.
// Otherwise, both runs might derive a value from the same second of the clock, and the value would
// look constant. The first run, which ends earlier, also restarts the operator at its end.
func (e *Explorer) playPair(ctx context.Context, jobs int, quiet time.Duration) ([]*judge.Outcome, error) {
	if e.Testbeds.OneAtATime() {
		jobs = 1
	}
	runs := make([]*judge.Outcome, 2)
	learning, side := errgroup.WithContext(ctx)
	learning.SetLimit(max(1, jobs))
	ahead := make(chan struct{}, len(e.Workload.Steps)+1)
	for i, in := range []setting{{over: ahead, restart: true, quiet: quiet}, {after: ahead, quiet: quiet}} {
		learning.Go(func() (err error) {
			runs[i], err = e.play(side, fmt.Sprintf("learn-%d", i+1), nil, nil, in)
			return err
		})
	}
	return runs, learning.Wait()
}

// judgeBaseline completes the baseline learned from two runs, and returns it with the problems of
// all its runs. If the desired state differs between the two runs, it adds a third run.
func (e *Explorer) judgeBaseline(ctx context.Context, base *baseline.Baseline, runs []*judge.Outcome, quiet time.Duration, progress io.Writer) (*baseline.Baseline, *judge.Outcome, error) {
	if text := lab.MayNot(runs[0].Requests); text != "" {
		fmt.Fprintf(progress, "warning: the operator may not: %s\n", text)
	}
	var ends []judge.Problem
	if wanted := base.OtherWants(&runs[0].Record, &runs[1].Record); len(wanted) > 0 {
		fmt.Fprintf(progress, "They differ in what is wanted, such as %s: learning from a third one.\n", wanted[0].Line())
		third, err := e.play(ctx, "learn-3", nil, nil, setting{quiet: quiet})
		if err != nil {
			return nil, nil, err
		}
		again, err := base.LearnMore(&third.Record, wanted)
		if err != nil {
			return nil, nil, err
		}
		for _, step := range slices.Sorted(maps.Keys(again)) {
			ends = append(ends, judge.Problem{Oracle: judge.OtherEnds, Step: step, Lines: again[step]})
		}
		runs = slices.Concat(runs, []*judge.Outcome{third})
	}
	together := withProblems(runs)
	together.Problems = append(together.Problems, ends...)
	for _, p := range together.Problems {
		base.Broken[observe.General(p.Lines[0])] = true
	}
	return base, together, nil
}

// withProblems returns a copy of the first run that has a problem, or of the first run if there is
// no problem. It adds the problems of the other runs, because a problem matters even if it occurs
// in only one run.
func withProblems(runs []*judge.Outcome) *judge.Outcome {
	first := max(0, slices.IndexFunc(runs, func(o *judge.Outcome) bool { return len(o.Problems) > 0 }))
	together := *runs[first]
	together.Problems = slices.Clone(together.Problems)
	for i, o := range runs {
		for _, p := range o.Problems {
			if i != first && !slices.ContainsFunc(together.Problems, p.Same) {
				p.At = time.Time{} // p.At is a time in another run, and has no meaning in this run.
				together.Problems = append(together.Problems, p)
			}
		}
	}
	return &together
}

// foundUndisturbed returns a finding with the problems of the baseline runs `o`. If `before`, the
// list of earlier findings, contains a finding without a fault, the two findings are merged.
// foundUndisturbed returns nil if there are no problems, or if the earlier finding contains all of
// them.
func (s subject) foundUndisturbed(o *judge.Outcome, b *baseline.Baseline, before []*Finding) *Finding {
	known := slices.IndexFunc(before, func(f *Finding) bool { return f.Fault == nil })
	if known < 0 {
		if len(o.Problems) == 0 {
			return nil
		}
		return s.newFinding(nil, o, b)
	}
	unknown := func(p judge.Problem) bool { return !slices.ContainsFunc(before[known].Problems, p.Same) }
	if !slices.ContainsFunc(o.Problems, unknown) {
		return nil
	}
	all := *o
	all.Problems = slices.Clone(o.Problems)
	for _, p := range before[known].Problems {
		if !slices.ContainsFunc(all.Problems, p.Same) {
			all.Problems = append(all.Problems, p)
		}
	}
	return s.newFinding(nil, &all, b)
}
