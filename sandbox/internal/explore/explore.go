// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Plan chooses the faults to play.
type Plan struct {
	results.Plan
	// Shrink leaves out the steps of the workload that a finding does not need. If For is limited,
	// its last fifth is reserved for that.
	Shrink bool
}

// Run learns the baseline from runs without a fault, then plays faults until all are played or
// p.For is over.
func (e *Explorer) Run(ctx context.Context, p Plan) (*results.Result[*Finding], error) {
	book, over, end, err := Tool.Begin(ctx, e.Testbeds.Dir, e.Testbeds.Inputs(e.Of, e.Workload, []any{e.Limits, e.Hold}), p.Plan)
	if err != nil {
		return nil, err
	}
	defer end()
	base, a, err := e.learnBaseline(ctx, p.Jobs, p.Progress)
	if err != nil {
		return nil, err
	}
	if e.Testbeds.OneAtATime() {
		p.Jobs, base.Elects = 1, false
	}
	left := choose(faults.PlanAll(base), p)
	book.Learnt = base.Describe()
	if err := book.Plan(p.Shard, p.Shards, ids(left)); err != nil {
		return nil, err
	}
	var first []string
	for _, p := range a.Problems {
		first = append(first, p.Summary())
	}
	if err := book.Judge(base.Scope(&a.Record, first)); err != nil {
		return nil, err
	}
	book.Remarks = streamed(base)
	fmt.Fprintf(p.Progress, "Learnt: %s. There are %d faults to play.\n", book.Learnt, len(left))
	baseline.SayMasked(p.Progress, base.Masked())
	if len(left) == 0 {
		return nil, p.Nothing("fault", "use the name of a fault, such as CrashAfter, or of a resource", "the operator writes nothing and sees no event in this workload")
	}
	if found := e.subject().foundUndisturbed(a, base, book.Findings); found != nil {
		found.After = book.Elapsed().Seconds()
		if err := book.Found(found); err != nil {
			return nil, err
		}
	}
	book.Replayed(undisturbed)
	q := &queue{explorer: e, plan: p, base: base, book: book, over: over, history: faults.NewHistory()}
	q.play = func(ctx context.Context, lane string, f *faults.Fault, in setting) (*judge.Outcome, error) {
		return e.play(ctx, lane, f, base, in)
	}
	q.fill(left)
	err = q.run(ctx)
	book.Left = q.left()
	if err == nil && p.Shrink {
		err = q.shrink(over)
	}
	book.Took = book.Elapsed()
	return book.Result, err
}

// streamed says which resources have no stale first list.
func streamed(base *baseline.Baseline) []string {
	resources := slices.DeleteFunc(slices.Clone(base.Watched), func(resource string) bool { return slices.Contains(base.Listed, resource) })
	if len(resources) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Stale first lists were not played for %s: the operator streams these lists or asks for current ones, so they cannot be stale.", strings.Join(resources, ", "))}
}

// subject returns the operator and the workload of the explorer.
func (e *Explorer) subject() subject {
	return subject{command: e.Testbeds.Command, workload: e.Workload, quiet: e.Limits.Quiet}
}

// choose returns the faults of this shard that p.Only selects.
func choose(all []faults.Planned, p Plan) []faults.Planned {
	return slices.DeleteFunc(slices.Clone(all), func(f faults.Planned) bool { return !p.Plays(f.Name(), f.ID()) })
}

// ids returns the IDs of faults, which are also their file names.
func ids(all []faults.Planned) []string {
	ids := make([]string, 0, len(all))
	for _, f := range all {
		ids = append(ids, f.ID())
	}
	return ids
}

// Replay plays the fault of a finding once more. It returns the finding of the new run, or nil
// if the run has no problem.
func (e *Explorer) Replay(ctx context.Context, f *Finding, progress io.Writer) (*Finding, error) {
	if err := e.Testbeds.Prepare(ctx, progress); err != nil {
		return nil, err
	}
	if f.Fault != nil && f.Fault.Effects().TwoProcesses && e.Testbeds.OneAtATime() {
		return nil, fmt.Errorf("the fault %s needs two processes of the operator at once, which cannot have the network of this machine: one may need the port of the other", f.Fault.Kind)
	}
	base, a, err := e.learnBaseline(ctx, 2, progress)
	if err != nil {
		return nil, err
	}
	if f.Fault == nil {
		if len(a.Problems) == 0 {
			return nil, nil
		}
		return e.subject().newFinding(nil, a, base), nil
	}
	fmt.Fprintf(progress, "Playing %s.\n", f.Fault.Name())
	o, err := e.play(ctx, "replay", f.Fault, base, setting{})
	switch {
	case err != nil:
		return nil, err
	case !o.Reached && len(o.Problems) == 0:
		return nil, fmt.Errorf("the fault was not reached: in this workload, the operator does not send the request, or receive the event, that the fault hits (%s)", f.Fault.Name())
	case len(o.Problems) == 0:
		return nil, nil
	}
	again := e.subject().newFinding(f.Fault, o, base)
	again.ID, again.Repeated, again.Tries = f.ID, 1, 1
	return again, nil
}
