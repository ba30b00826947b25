// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// Fuzzer tests an operator with edits of a sample, the custom resource provided by the user.
type Fuzzer struct {
	// Testbeds creates the sandboxes in which the operator runs.
	Testbeds *testbed.Maker
	// Of lists the names of the files that contain the manifests and the sample.
	Of     []string
	Limits testbed.Limits
	// Sample is the object to edit. Others is a manifest of other objects that the sample needs; it
	// may be empty.
	Sample map[string]any
	Others string
	// Ignore lists resources and fields that are excluded from comparisons, in the format of
	// NewMask.
	Ignore []string
	// Busy enables an additional check: each edit without a problem is repeated while the operator
	// is busy with a new object.
	Busy bool
	// Ready is the CEL expression that the sample's state in the baseline must meet, such as
	// `object.status.phase == "Running"`. As in an invariant of a workload, the variable "objects" has
	// the lists of all objects. It is empty if any state is accepted in which nothing
	// changes for a while.
	Ready string

	ready  *condition.Condition // Ready, compiled
	target *target
	base   *baseline
}

// Plan selects the edits to test and limits the run.
type Plan struct {
	results.Plan
	// Faults enables additional trials: each edit without a problem is repeated with faults.
	Faults bool
}

// Run learns the cluster state with the sample, then tests edits of the sample until all edits are
// tested or the time limit p.For is reached.
func (f *Fuzzer) Run(ctx context.Context, p Plan) (*results.Result[*Finding], error) {
	book, over, end, err := Tool.Begin(ctx, f.Testbeds.Dir, f.inputs(), p.Plan)
	if err != nil {
		return nil, err
	}
	defer end()
	w, err := f.learn(ctx, p.Progress)
	if err != nil {
		return nil, err
	}
	if f.Testbeds.OneAtATime() {
		p.Jobs = 1
	}
	all := chosen(edits.Of(f.target.schema, f.target.object(f.Sample).Object), p)
	if len(all) == 0 {
		w.testbed.End()
		return nil, p.Nothing("edit", "use the name of a property, or a part of the name", "the schema describes nothing that can be edited")
	}
	book.Learnt = f.base.describe()
	if err := book.Plan(p.Shard, p.Shards, ids(all)); err != nil {
		w.testbed.End()
		return nil, err
	}
	fmt.Fprintf(p.Progress, "Learnt: %s. There are %d edits of one property.\n", book.Learnt, len(all))
	if f.base.idle {
		fmt.Fprintln(p.Progress, "warning: the operator has written nothing about the sample: does it do anything about it, and is it in its output why not?")
	}
	q := &queue{fuzzer: f, plan: p, book: book, over: over, variety: faults.NewVariety()}
	q.fill(all)
	by := w.record.scope(f.base.mask.Mask, f.Ignore)
	err = errors.Join(f.judge(book, by), q.run(w))
	err = errors.Join(err, f.judge(book, by)) // Masks may have been added during the run.
	book.Left, book.Took = len(q.edits), book.Elapsed()
	return book.Result, err
}

// inputs returns the inputs on which the results of a run depend, such as the sample and the
// limits.
func (f *Fuzzer) inputs() results.Inputs {
	return f.Testbeds.Inputs(f.Of, []any{f.Sample, f.Others, f.Testbeds.Workload}, []any{f.Limits, f.Ignore, f.Busy, f.Ready})
}

// judge stores in the results which objects and fields are compared, and which of them the mask
// currently excludes.
func (f *Fuzzer) judge(book *results.Book[*Finding], by *results.Scope) error {
	by.Masked = f.base.mask.All()
	return book.Judge(by)
}

// chosen returns a trial for each edit that matches p.Only and belongs to this run's shard (the
// part of all edits that this run tests).
func chosen(all []edits.Edit, p Plan) []trial {
	var trials []trial
	for _, e := range all {
		if t := (trial{edits: []edits.Edit{e}}); p.Plays(t.name(), t.id()) {
			trials = append(trials, t)
		}
	}
	return trials
}

// Replay repeats a finding's trial. It returns the new run's finding, or nil if the run has no
// problem.
func (f *Fuzzer) Replay(ctx context.Context, found *Finding, progress io.Writer) (*Finding, error) {
	w, err := f.learn(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer w.testbed.End()
	w.waiter.quiet = f.Limits.Quiet
	fmt.Fprintf(progress, "Playing %s.\n", found.Where())
	played, came, problem, err := w.repeat(ctx, found.trial())
	switch {
	case err != nil:
		return nil, err
	case problem == nil && came == notReached:
		return nil, errors.New("the fault was not reached: after this edit, the operator does not send the write that the fault hits")
	case problem == nil && (came == denied || came == same) && (found.Outcome == accepted || found.Outcome == disturbed):
		return nil, fmt.Errorf("the edit was not made (%s): the definition or the sample is another than that of the finding", came)
	case problem == nil:
		return nil, nil
	}
	again := f.newFinding(played, came, problem, w)
	again.Repeated, again.Tries = 1, 1
	return again, nil
}
