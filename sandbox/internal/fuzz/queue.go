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

// queue plays trials, several side by side: each worker (lane) has a sandbox.
type queue struct {
	fuzzer *Fuzzer
	plan   Plan
	book   *results.Book[*Finding]
	over   context.Context

	mu sync.Mutex
	// again are trials that had findings with an earlier version of the program or of the files.
	// They are played first.
	again []trial
	// edits are the remaining edits of single properties, and sequences are sequences of edits that
	// had no problem alone.
	edits, sequences []trial
	// survived are the last edits without a problem, from which the next sequence is made.
	survived []edits.Edit
	// variety chooses the faults for edits that had no problem without a fault.
	variety *faults.Variety
	// faults is the number of trials with a fault that were played here.
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

// disturbed reports whether an edit that was played needs no more trials with faults.
func (q *queue) disturbed(id string) bool {
	for _, p := range q.book.Played {
		if p.ID == id && p.Outcome == string(accepted) && p.Error == "" && !p.Found {
			return p.Then != nil && !slices.ContainsFunc(p.Then, func(id string) bool { return !q.played(id) })
		}
	}
	return true
}

// played reports whether a trial was played and judged.
func (q *queue) played(id string) bool {
	return slices.ContainsFunc(q.book.Played, func(p results.Played) bool { return p.ID == id && p.Done() })
}

// take returns the next trial, sequences first; false if there is none or no time.
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

// inSequence is the number of edits without a problem that are played before each sequence.
const inSequence = 4

// survive records an edit without a problem. From every inSequence such edits, it makes a
// sequence of edits that do not touch the same property.
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
	// After an interrupt, the report has the trials that were played.
	return q.err
}

// lane is a worker, which plays trials in its sandbox.
type lane struct {
	*queue
	name  string
	world *world
	// used is set if the last trial may have left the sandbox in another state.
	used bool
}

func (l *lane) end() {
	if l.world != nil {
		l.world.testbed.End()
		l.world = nil
	}
}

// ready starts a sandbox if there is none. A used sandbox is renewed, or replaced if that
// fails.
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

// play plays a trial, a second time if that is needed to confirm a finding, and records the
// result. It returns the follow-up trials: an edit without a problem is played with faults.
func (l *lane) play(ctx context.Context, t trial) []trial {
	begun := time.Now()
	played := results.Played{ID: t.id(), Name: t.name()}
	var found *Finding
	err := l.ready(ctx)
	if err == nil {
		var came outcome
		var problem *Problem
		if t.fault != nil && t.want == nil { // The trial was found by an earlier process of this command.
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
			// A crash of the sandbox is not a problem of the operator.
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

// giveBack returns an edit to the queue whose trial was cut off by the deadline.
func (q *queue) giveBack(t trial) {
	if len(t.edits) == 1 && t.fault == nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.edits = append(q.edits, t)
	}
}

// crash returns the crash of a component of the sandbox, and stops the sandbox, or returns nil.
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

// confirm plays a finding again in a renewed sandbox, with the longer quiet time of the
// baseline. Certain findings, and findings of a kind that is already confirmed, are not played
// again. If a finding with a fault also occurs without the fault, the finding without is
// returned.
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

// mostFaults is the maximum number of faults that are played with an edit.
const mostFaults = 4

// disturb returns trials of an edit with faults that were not played yet.
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

// note records and prints the result of a trial. It returns the follow-up trials.
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

// left estimates the number of remaining trials, with trials with faults included.
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
