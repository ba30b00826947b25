// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// queue runs trials in parallel lanes (workers), each with its own sandbox.
type queue struct {
	fuzzer *Fuzzer
	plan   Plan
	book   *results.Book[*Finding]
	over   context.Context

	mu sync.Mutex
	// again lists trials that had findings in an earlier run with other inputs, such as another
	// version of the operator. These trials come first.
	again []trial
	// edits lists the remaining trials with a single edit. sequences lists trials that combine
	// several edits, none of which has a problem individually.
	edits, sequences []trial
	// survived collects edits without a problem, from which the next sequence of edits is combined.
	survived []edits.Edit
	// variety selects the faults for edits that have no problem without a fault.
	variety *faults.Variety
	// faults counts the trials with a fault that this process has run.
	faults int
	err    error
}

func (q *queue) fill(all []trial) {
	for _, f := range q.book.Again {
		if t := f.trial(); q.plan.Chooses(t.name(), t.id()) {
			q.again = append(q.again, t)
		}
	}
	for _, t := range all {
		id := t.id()
		if slices.ContainsFunc(q.again, func(t trial) bool { return t.id() == id }) {
			continue
		}
		if !q.played(id) || q.plan.Faults && !q.disturbed(id) {
			q.edits = append(q.edits, t)
		}
	}
}

// disturbed reports whether all trials with faults have been run for an edit, given the ID of the
// edit's trial without a fault. It also returns true for an edit that is not tested with faults,
// such as a rejected edit.
func (q *queue) disturbed(id string) bool {
	for _, p := range q.book.Played {
		if p.ID == id && p.Outcome == string(accepted) && p.Error == "" && !p.Found {
			return p.Then != nil && !slices.ContainsFunc(p.Then, func(id string) bool { return !q.played(id) })
		}
	}
	return true
}

// played reports whether the trial with the given ID has been run and judged.
func (q *queue) played(id string) bool {
	return slices.ContainsFunc(q.book.Played, func(p results.Played) bool { return p.ID == id && p.Done() })
}

// take removes and returns the next trial. Trials that had findings in an earlier run come first,
// then sequences of edits, then single edits. It returns false if no trial is left or the time is
// up.
func (q *queue) take() (trial, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, from := range []*[]trial{&q.again, &q.sequences, &q.edits} {
		if q.over.Err() == nil && q.err == nil && len(*from) > 0 {
			next := (*from)[0]
			*from = (*from)[1:]
			return next, true
		}
	}
	return trial{}, false
}

// inSequence is the number of edits without a problem that are collected for each sequence.
const inSequence = 4

// survive records an edit without a problem. Once inSequence such edits are recorded, it combines
// up to three of them, whose paths do not overlap, into a sequence.
func (q *queue) survive(e edits.Edit) {
	q.survived = append(q.survived, e)
	if len(q.survived) < inSequence {
		return
	}
	var sequence trial
	for _, next := range q.survived {
		if len(sequence.edits) < 3 && !slices.ContainsFunc(sequence.edits, func(e edits.Edit) bool { return e.Path.Within(next.Path) }) {
			sequence.edits = append(sequence.edits, next)
		}
	}
	q.survived = nil
	if len(sequence.edits) > 1 && !q.played(sequence.id()) {
		q.sequences = append(q.sequences, sequence)
	}
}

func (q *queue) run(first *world) error {
	var lanes sync.WaitGroup
	for i := range max(1, q.plan.Jobs) {
		w := first
		if i > 0 {
			w = nil
		}
		lanes.Go(func() {
			l := &lane{queue: q, name: fmt.Sprintf("lane-%d", i+1), world: w}
			defer l.end()
			for {
				next, ok := q.take()
				if !ok {
					return
				}
				for _, then := range l.play(l.over, next) {
					if l.over.Err() == nil {
						l.play(l.over, then)
					}
				}
			}
		})
	}
	lanes.Wait()
	// An interrupt is not an error: the report covers the trials that were run before it.
	return q.err
}

// lane is a worker that runs trials in its own sandbox.
type lane struct {
	*queue
	name  string
	world *world
	// used is set if the last trial may have changed the sandbox's state.
	used bool
}

func (l *lane) end() {
	if l.world != nil {
		l.world.testbed.End()
		l.world = nil
	}
}

// ready makes sure that the lane has a clean sandbox. It starts a missing sandbox. It renews a
// used sandbox or, if that fails, replaces it.
func (l *lane) ready(ctx context.Context) error {
	if l.world != nil && l.used && l.world.renew(ctx) != nil {
		l.end()
	}
	l.used = false
	if l.world != nil {
		return nil
	}
	var err error
	l.world, err = l.fuzzer.begin(ctx, l.name)
	return err
}

// play runs a trial and records the result. It repeats the trial if a finding needs confirmation.
// For an edit without a problem, it returns follow-up trials with faults.
func (l *lane) play(ctx context.Context, t trial) []trial {
	begun := time.Now()
	played := results.Played{ID: t.id(), Name: t.name()}
	var found *Finding
	err := l.ready(ctx)
	if err == nil {
		var came outcome
		var problem *Problem
		if t.fault != nil && t.want == nil { // The finding stems from an earlier process, so the state without the fault is unknown.
			_, came, problem, err = l.world.repeat(ctx, t)
		} else {
			came, problem, err = l.world.try(ctx, t)
		}
		played.Outcome = string(came)
		if problem != nil {
			found = l.fuzzer.newFinding(t, came, problem, l.world)
			played.Found = true
			found, err = l.confirm(ctx, found, t)
		}
	}
	if ctx.Err() != nil {
		l.giveBack(t)
		return nil
	}
	if err != nil || found != nil {
		if crash := l.crash(); crash != nil {
			// The crash of a sandbox is not a problem of the operator, and explains any problem
			// that was found.
			found, played.Found, err = nil, false, crash
		}
		l.used = true
	}
	if err != nil {
		played.Error = err.Error()
	}
	played.Seconds = time.Since(begun).Seconds()
	return l.note(played, found, t)
}

// giveBack requeues a single edit whose trial was interrupted, for example by the deadline.
func (q *queue) giveBack(t trial) {
	if len(t.edits) == 1 && t.fault == nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.edits = append(q.edits, t)
	}
}

// crash returns the error of a crashed sandbox component and stops the sandbox. It returns nil if
// no component has crashed.
func (l *lane) crash() error {
	if l.world == nil {
		return nil
	}
	err := l.world.testbed.Sandbox.Crash()
	if err != nil {
		l.end()
	}
	return err
}

// confirm repeats a finding's trial in a clean sandbox, with the longer quiet time (time without
// changes) of the runs without edits. It does not repeat the trial if the finding is certain, or
// similar to a confirmed finding. If a finding with a fault also occurs without the fault, it
// returns the finding without the fault.
func (l *lane) confirm(ctx context.Context, found *Finding, t trial) (*Finding, error) {
	if found.Problem.certain() {
		return found, nil
	}
	l.mu.Lock()
	found.Like = l.book.Like(found)
	l.mu.Unlock()
	if found.Like != "" {
		return found, nil
	}
	l.used = true
	if err := l.ready(ctx); err != nil {
		return found, err
	}
	found.Tries = 1
	quick := l.world.waiter.quiet
	l.world.waiter.quiet = l.fuzzer.Limits.Quiet
	again, came, problem, err := l.world.repeat(ctx, t)
	l.world.waiter.quiet = quick
	switch {
	case err != nil:
	case problem == nil && came == accepted, problem == nil && came == disturbed:
		found.Second = "all was well"
	case problem == nil:
		found.Second = "what came of it was: " + string(came)
	default:
		found = found.secondTime(l.fuzzer.newFinding(again, came, problem, l.world))
	}
	return found, err
}

// mostFaults is the maximum number of trials with a fault per edit. Each trial injects one fault.
const mostFaults = 4

// disturb returns trials that combine an edit with faults, except for trials that are already done.
func (l *lane) disturb(t trial) []trial {
	var all []trial
	for _, fault := range l.variety.Choose(l.world.player.faults, mostFaults) {
		with := trial{edits: t.edits, fault: &fault, want: l.world.player.edited}
		if !l.played(with.id()) {
			all = append(all, with)
		}
	}
	return all
}

// note records and prints a trial's result, and returns the follow-up trials with faults.
func (l *lane) note(played results.Played, found *Finding, t trial) []trial {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept error
	var then []trial
	if t.fault != nil {
		l.faults++
	}
	switch {
	case found != nil:
		found.After = l.book.Elapsed().Seconds()
		kept = l.book.Found(found)
	case played.Outcome == string(accepted) && played.Error == "" && len(t.edits) == 1:
		l.survive(t.edits[0])
		if l.plan.Faults {
			then = l.disturb(t)
			played.Then = ids(then)
		}
	}
	if err := errors.Join(kept, l.book.Note(played)); err != nil && l.err == nil {
		l.err = err
	}
	wanted := played.Outcome == string(accepted) || played.Outcome == string(disturbed)
	l.book.Progress(l.over, l.plan.Progress, played, found, wanted, l.left())
	return then
}

// left estimates the number of remaining trials, including trials with faults that are not planned
// yet.
func (q *queue) left() int {
	left := len(q.again) + len(q.edits) + len(q.sequences)
	if without := len(q.book.Played) - q.faults; without > 0 {
		left += left * q.faults / without
	}
	return left
}

func ids(all []trial) []string {
	ids := []string{}
	for _, t := range all {
		ids = append(ids, t.id())
	}
	return ids
}
