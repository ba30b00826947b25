// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Plan selects the faults to inject and limits the exploration.
type Plan struct {
	results.Plan
	// Shrink enables shrinking, which removes the workload steps that are not needed to reproduce a
	// finding. If the exploration has a time limit, its last fifth is reserved for shrinking.
	Shrink bool
	// Timelines keeps the timeline of each fault that takes effect and that the operator survives.
	Timelines bool
}

// Run learns the baseline from runs without a fault, then injects a single fault per run until all
// faults have been injected or the time limit p.For is reached.
func (e *Explorer) Run(ctx context.Context, p Plan) (*results.Result[*Finding], error) {
	book, over, end, err := Tool.Begin(ctx, e.Testbeds.Dir, e.inputs(), p.Plan)
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
	scope := func() error { return book.Judge(base.Scope(&a.Record, first)) }
	if err := scope(); err != nil {
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
	err = errors.Join(q.run(ctx), scope()) // Again, as runs may have taught what is not counted.
	book.Left = q.left()
	if err == nil && p.Shrink {
		err = q.shrink(over)
	}
	book.Took = book.Elapsed()
	return book.Result, err
}

// inputs returns everything that the results of an exploration depend on, such as the operator's
// command, the workload and the time limits.
func (e *Explorer) inputs() results.Inputs {
	return e.Testbeds.Inputs(e.Of, e.Workload, []any{e.Limits, e.Hold})
}

// streamed returns a report line that lists the watched resources whose initial list cannot be
// stale, because the operator streams it or requests a current list.
func streamed(base *baseline.Baseline) []string {
	resources := slices.DeleteFunc(slices.Clone(base.Watched), func(resource string) bool { return slices.Contains(base.Listed, resource) })
	if len(resources) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Stale first lists were not played for %s: the operator streams these lists or asks for current ones, so they cannot be stale.", strings.Join(resources, ", "))}
}

// subject returns the operator and workload under test, for use in findings.
func (e *Explorer) subject() subject {
	return subject{command: e.Testbeds.Command, workload: e.Workload, flags: e.Testbeds.Flags(e.Limits, e.Hold)}
}

// choose returns the faults that belong to this process's shard and match p.Only.
func choose(all []faults.Planned, p Plan) []faults.Planned {
	return slices.DeleteFunc(slices.Clone(all), func(f faults.Planned) bool { return !p.Plays(f.Name(), f.ID()) })
}

// ids returns the fault IDs, which also serve as the file names of findings.
func ids(all []faults.Planned) []string {
	ids := make([]string, 0, len(all))
	for _, f := range all {
		ids = append(ids, f.ID())
	}
	return ids
}

// Replay injects a finding's fault again, or repeats the baseline runs if the finding has no fault.
// It returns the new run's finding, or nil if the run has no problem.
func (e *Explorer) Replay(ctx context.Context, f *Finding, progress io.Writer) (*Finding, error) {
	if err := e.Testbeds.Prepare(ctx, progress); err != nil {
		return nil, err
	}
	if err := f.possible(e.Testbeds.OneAtATime(), e.Workload.HostNetwork); err != nil {
		return nil, err
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
	case o.Unjudgeable() != "":
		return nil, errors.New(o.Unjudgeable())
	case !o.Reached && len(o.Problems) == 0:
		return nil, fmt.Errorf("the fault was not reached: in this workload, the operator does not send the request, or receive the event, that the fault hits (%s)", f.Fault.Name())
	case len(o.Problems) == 0:
		return nil, nil
	}
	again := e.subject().newFinding(f.Fault, o, base)
	again.ID, again.Repeated, again.Tries = f.ID, 1, 1
	return again, nil
}
