// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/words"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Fuzzer plays edits of a sample.
type Fuzzer struct {
	// Explorer provides the sandboxes, the operator, and the timeouts.
	Explorer *explore.Explorer
	// Sample is the object to edit, and Others a manifest of the objects that the sample needs.
	Sample map[string]any
	Others string
	// Ignore are resources and fields that are not compared: see NewMask.
	Ignore []string
	// Busy plays each edit that shows no problem again, while the operator is busy with a new
	// object.
	Busy bool

	target *target
	base   *baseline
	// progress receives a line for each difference that is masked.
	progress io.Writer
}

// baseline is the behavior of the operator without an edit.
type baseline struct {
	// before and state are the cluster's objects without and with the sample.
	before, state state.State
	mask          *Mask
	// quiet is the time without a change after which the cluster counts as quiet, and took the time
	// from creating the sample until then.
	quiet, took time.Duration
	// busy is the number of requests a second that counts as a hot loop.
	busy float64
	// observed is set if the operator writes status.observedGeneration.
	observed bool
	// fresh is set if the sample can be deleted and created again.
	fresh bool
	// watched are the resources that the operator watches from its start on.
	watched []string
	// idle is set if the operator wrote nothing in response to the sample.
	idle bool
	// reports is the report of the operator in the status of the sample.
	reports string
	// habits are changes that recur in an otherwise quiet cluster.
	habits map[observe.Habit]bool
	// managers are the field managers of all objects.
	managers map[string]bool
}

// Plan chooses the edits to play.
type Plan struct {
	results.Plan
	// Faults plays each edit that shows no problem again, with faults.
	Faults bool
}

// Run learns the state of the sample, and plays edits of the sample until all are played or
// p.For is over.
func (f *Fuzzer) Run(ctx context.Context, p Plan) (*results.Result[*Finding], error) {
	e := f.Explorer
	book, over, end, err := Tool.Begin(ctx, e.Dir, results.Inputs{
		Command: e.Command, Of: e.Of, Installed: e.Workload.Install,
		Subject: []any{f.Sample, f.Others, e.Workload}, Judging: []any{e.Judging(), f.Ignore, f.Busy},
	}, p.Plan)
	if err != nil {
		return nil, err
	}
	defer end()
	w, err := f.learn(ctx, p.Progress)
	if err != nil {
		return nil, err
	}
	if e.OneAtATime() {
		p.Jobs = 1
	}
	all := chosen(edits.Of(f.target.schema, f.sample(f.Sample).Object), p)
	if len(all) == 0 {
		w.session.End()
		return nil, noEdits(p)
	}
	book.Learnt = f.base.describe()
	ids := make([]string, 0, len(all))
	for _, e := range all {
		ids = append(ids, trial{edits: []edits.Edit{e}}.id())
	}
	if err := book.Plan(p.Shard, p.Shards, ids); err != nil {
		w.session.End()
		return nil, err
	}
	fmt.Fprintf(p.Progress, "Learnt: %s. There are %d edits of one property.\n", book.Learnt, len(all))
	if f.base.idle {
		fmt.Fprintln(p.Progress, "warning: the operator has written nothing about the sample: does it do anything about it, and is it in its output why not?")
	}
	q := &queue{fuzzer: f, plan: p, book: book, over: over, variety: faults.NewVariety()}
	q.fill(all)
	by := w.scope()
	err = errors.Join(book.Judge(by), q.run(w))
	by.Masked = f.base.mask.All() // Fields were masked since.
	err = errors.Join(err, book.Judge(by))
	book.Left, book.Took = len(q.edits), book.Elapsed()
	return book.Result, err
}

// chosen returns the edits of this shard that p.Only selects.
func chosen(all []edits.Edit, p Plan) []edits.Edit {
	return slices.DeleteFunc(all, func(e edits.Edit) bool {
		t := trial{edits: []edits.Edit{e}}
		return !p.Plays(t.name(), t.id())
	})
}

// noEdits returns an error that says why there is no edit to play.
func noEdits(p Plan) error {
	switch {
	case len(p.Only) > 0:
		return fmt.Errorf("no edit to play: no edit matches --only %s: use the name of a property, or a part of the name", strings.Join(p.Only, ", "))
	case p.Shards > 1:
		return fmt.Errorf("no edit to play: part %d/%d is empty, as there are few edits", p.Shard, p.Shards)
	}
	return errors.New("no edit to play: the schema describes nothing that can be edited")
}

// describe describes the baseline in a line.
func (b *baseline) describe() string {
	text := fmt.Sprintf("the sample comes to %d more objects in %s, and all is at rest when nothing happens for %s",
		len(b.state)-len(b.before)-1, b.took.Round(100*time.Millisecond), b.quiet.Round(100*time.Millisecond))
	if !b.observed {
		text += "; the operator writes no status.observedGeneration"
	}
	if !b.fresh {
		text += "; it does not let the sample be deleted, so no new objects are compared"
	}
	return text
}

// ignoredFields returns the fields that the user excludes. Changes of these fields do not count
// as activity.
func (f *Fuzzer) ignoredFields() []workload.Unjudged {
	var all []workload.Unjudged
	for _, own := range f.Ignore {
		if resource, path, some := strings.Cut(own, " "); some {
			all = append(all, workload.Unjudged{Resource: resource, Path: path})
		}
	}
	return all
}

// ignoreFlag returns the flag by which users exclude a field.
func ignoreFlag(resource, path string) string { return fmt.Sprintf("--ignore '%s %s'", resource, path) }

// prepare prepares the sandboxes, in which the manifests and the objects that the sample needs
// are installed, and finds the kind of the sample.
func (f *Fuzzer) prepare(ctx context.Context, progress io.Writer) error {
	judged := *f.Explorer.Workload
	judged.Unjudged = slices.Concat(judged.Unjudged, f.ignoredFields())
	f.Explorer.Workload, f.Explorer.Unjudge = &judged, ignoreFlag
	if f.Others != "" {
		dir, err := f.Explorer.Scratch()
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "others.yaml")
		if err := os.WriteFile(file, []byte(f.Others), 0o600); err != nil {
			return err
		}
		workload := *f.Explorer.Workload
		workload.Install = append(slices.Clone(workload.Install), file)
		f.Explorer.Workload = &workload
	}
	f.Explorer.Installed = func(ctx context.Context, client dynamic.Interface) (err error) {
		f.target, err = find(ctx, client, f.sample(f.Sample))
		return err
	}
	return f.Explorer.Prepare(ctx, progress)
}

// learn learns the baseline: it creates the sample twice, and masks the differences between the
// resulting states. It returns the sandbox, in which the sample exists.
func (f *Fuzzer) learn(ctx context.Context, progress io.Writer) (_ *world, err error) {
	f.progress = progress
	if err := f.prepare(ctx, progress); err != nil {
		return nil, err
	}
	s, err := f.Explorer.Begin(ctx, "learn")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.End()
		}
	}()
	f.base = &baseline{mask: NewMask(f.Ignore), habits: map[observe.Habit]bool{}, quiet: f.Explorer.Quiet, busy: mostBusy}
	w := &world{Fuzzer: f, session: s, quiet: f.Explorer.Quiet}
	fmt.Fprintln(progress, "Learning what the sample comes to.")
	if err := s.Start(); err != nil {
		return nil, err
	}
	if f.base.before, err = w.learnNext(ctx, "the operator was started"); err != nil {
		return nil, err
	}
	watched := s.Watched()
	w.gap = 0 // The time until a process has started is not a pause in its work.
	if f.base.state, err = w.learnSample(ctx); err != nil {
		return nil, err
	}
	f.base.idle = len(s.Faults()) == 0
	if text := s.MayNot(); text != "" {
		fmt.Fprintf(progress, "warning: the operator may not: %s\n", text)
	}
	w.objects = s.Objects()
	now := s.Watched()
	f.base.watched = slices.DeleteFunc(watched, func(resource string) bool { return !slices.Contains(now, resource) })
	f.base.busy = max(busy, 2*float64(s.Activity(w.quiet).Requests)/w.quiet.Seconds())
	if o := w.find(); o != nil {
		f.base.observed, f.base.reports = observed(o) > 0, reports(o)
	}
	f.base.quiet = min(max(w.gap+w.gap/2+500*time.Millisecond, time.Second), f.Explorer.Quiet)
	f.base.managers = s.Managers()
	err = w.learnAgain(ctx)
	maps.Copy(f.base.managers, s.Managers())
	s.Know(f.base.habits)
	w.quiet = f.base.quiet
	return w, err
}

// learnNext waits until the cluster is quiet after an action, described by what, and returns
// the state. A problem is returned as an error.
func (w *world) learnNext(ctx context.Context, what string) (state.State, error) {
	state, problem, err := w.settle(ctx, goal{learns: true}, w.Explorer.Settle)
	if err == nil && problem != nil {
		err = undisturbed(what, problem, nil)
		if lines := w.session.Advice(); problem.Oracle == judge.NotAtRest && len(lines) > 0 {
			err = fmt.Errorf("%w\n%s", err, words.Indent(lines))
		}
		if output := w.session.Output(10); strings.TrimSpace(strings.Join(output, "")) != "" {
			err = fmt.Errorf("%w; the operator's output ends with\n%s", err, words.Indent(output))
		}
		if text := w.session.MayNot(); text != "" {
			err = fmt.Errorf("%w\n    it may not: %s", err, text)
		}
	}
	for _, learnt := range w.session.Learnt(w.quiet) {
		w.base.habits[learnt.Habit] = true
		for _, masked := range learnt.Mask(observe.Names{}, w.base.mask.Mask) {
			fmt.Fprintf(w.progress, "Not judged, as it %s: %s\n", masked.Why, masked)
		}
	}
	return state, err
}

// learnSample creates the sample, and returns the resulting state.
func (w *world) learnSample(ctx context.Context) (state.State, error) {
	w.session.Mark()
	if err := w.create(ctx, w.Sample); err != nil {
		return nil, fmt.Errorf("--object: create it: %w", err)
	}
	state, err := w.learnNext(ctx, "the sample was created")
	w.base.took = max(w.base.took, time.Since(w.session.Began()))
	return state, err
}

// learnAgain deletes the sample and creates it again. Leftovers of the first sample, and
// differences between the two states, are masked.
func (w *world) learnAgain(ctx context.Context) error {
	if err := w.remove(ctx); err != nil {
		return err
	}
	w.session.Act("the sample is deleted")
	state, problem, err := w.settle(ctx, goal{gone: true, state: w.base.before}, w.limit())
	switch {
	case err != nil:
		return err
	case problem != nil && problem.Oracle == judge.Failed:
		return undisturbed("the sample was deleted", problem, nil)
	case problem != nil && problem.Oracle != judge.OtherState:
		return w.renew(ctx)
	}
	w.base.fresh = true
	w.base.mask.Learn(w.base.mask.Compare(w.base.before, state), leftBehind)
	again, err := w.learnSample(ctx)
	if err != nil {
		return err
	}
	w.base.mask.Learn(w.base.mask.Compare(w.base.state, again), differsUnedited)
	return nil
}

// limit returns the time that the operator has to react to an edit.
func (w *world) limit() time.Duration { return w.base.took + w.Explorer.Patience }

// Replay plays a finding again. It returns the finding of the new run, or nil if there is no
// problem.
func (f *Fuzzer) Replay(ctx context.Context, found *Finding, progress io.Writer) (*Finding, error) {
	w, err := f.learn(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer w.session.End()
	w.quiet = f.Explorer.Quiet
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
