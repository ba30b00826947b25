// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
)

// world is a testbed in which the operator runs and the sample object exists. The cluster is quiet
// between trials.
type world struct {
	base      *baseline
	testbed   *testbed.Testbed
	record    *record
	process   *process
	object    *editedObject
	waiter    *waiter
	player    *player
	disturber *disturber
	// mostQuiet is the quiet time (the time without changes) used while the baseline is learned. It
	// is set by --quiet.
	mostQuiet time.Duration
}

// open creates a world without starting the operator. The caller must end the world's testbed.
func (f *Fuzzer) open(ctx context.Context, name string) (*world, error) {
	habits := &observe.Habits{Unjudged: f.Testbeds.Workload.Unjudged, Learns: true}
	// Do not connect the log to the habits, so that rejected writes do not count as activity. The
	// API server may keep rejecting the operator's writes after an edit.
	t, err := f.Testbeds.Open(ctx, testbed.Options{Name: name, Habits: habits, Log: &observe.Log{}})
	if err != nil {
		return nil, err
	}
	s := &settle.Settler{Recorder: t.Recorder, Log: t.Log, Habits: habits, Proxy: t.Proxy, Most: f.Limits.Quiet, Say: ignoreFlag}
	w := &world{
		base: f.base, testbed: t, mostQuiet: f.Limits.Quiet,
		record: &record{settler: s, notes: t.Notes}, process: &process{operator: t.Operator}, object: &editedObject{f.target, f.Sample, t.Recorder},
	}
	w.waiter = &waiter{base: w.base, record: w.record, object: w.object, failures: w.process.failures, watched: s.Watches, patience: f.Limits.Patience, quiet: w.base.quiet}
	w.player = &player{
		base: w.base, object: w.object, act: w.record.act, reach: w.waiter.reach, busy: f.Busy,
		begun: w.waiter.begun, reactions: w.record.reactions, broken: w.record.broken,
		editor:   &editor{object: w.object, act: w.record.act, failures: w.process.failures},
		restorer: &restorer{base: w.base, object: w.object, act: w.record.act, reach: w.waiter.reach},
	}
	w.disturber = &disturber{t.Injector(s), w.process}
	w.mark()
	return w, nil
}

// mark begins the recording period of the next trial, and ends the current fault.
func (w *world) mark() {
	w.process.mark()
	w.record.mark()
}

// begin creates a world, starts the operator, and creates the sample object.
func (f *Fuzzer) begin(ctx context.Context, name string) (*world, error) {
	w, err := f.open(ctx, name)
	if err != nil {
		return nil, err
	}
	w.testbed.Habits.Know(f.base.habits)
	if err := w.fill(ctx); err != nil {
		w.testbed.End()
		return nil, err
	}
	return w, nil
}

// fill starts the operator and creates the sample object. It masks any differences from the
// baseline, because these differences occur without an edit.
func (w *world) fill(ctx context.Context) error {
	w.mark()
	if err := w.process.start(); err != nil {
		return err
	}
	if _, problem, err := w.waiter.reach(ctx, goal{learns: true}); err != nil || problem != nil {
		return undisturbed("the operator was started", problem, err)
	}
	w.record.act("the sample is created")
	if err := w.object.create(ctx, w.object.sample); err != nil {
		return err
	}
	state, problem, err := w.waiter.reach(ctx, goal{state: w.base.state})
	switch {
	case err != nil:
		return err
	case problem != nil && problem.Oracle == judge.OtherState:
		w.base.excuse(w.base.mask.Compare(w.base.state, state), otherInNew)
	case problem != nil:
		return undisturbed("the sample was created", problem, nil)
	}
	w.waiter.objects = w.testbed.Recorder.Count()
	return nil
}

// undisturbed returns an error for a problem that occurs without an edit, or nil if there is no
// problem.
func undisturbed(when string, problem *Problem, err error) error {
	if err != nil || problem == nil {
		return err
	}
	return fmt.Errorf("when %s, though nothing was edited: %s", when, problem.summary())
}

// renew restarts the operator and recreates the sample object in the same sandbox, which is faster
// than starting another sandbox. It returns an error if the edit has left objects behind.
func (w *world) renew(ctx context.Context) error {
	w.process.operator.Close()
	if err := w.object.remove(ctx); err != nil {
		return err
	}
	// Remove finalizers on behalf of the operator, which is not running.
	if err := w.object.release(ctx); err != nil {
		return err
	}
	w.mark()
	over := time.After(w.waiter.limit())
	for {
		differences := w.base.mask.Compare(w.base.before, w.record.state())
		if len(differences) == 0 && w.record.activity(w.waiter.quiet).quiet >= w.waiter.quiet/2 {
			return w.fill(ctx)
		}
		select {
		case <-time.After(look):
		case <-over:
			return fmt.Errorf("what the edit has left behind does not go: %v", lines(differences))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
