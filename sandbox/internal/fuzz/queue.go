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

// queue plays edits, some side by side: each lane has a world.
type queue struct {
	fuzzer *Fuzzer
	plan   Plan
	book   *results.Book[*Finding]
	over   context.Context

	mu sync.Mutex
	// again are trials with which something was found before, with another program or other
	// files. They are played first.
	again []trial
	// edits are those of one property that are left, and sequences those of several that
	// were survived one by one.
	edits     []edits.Edit
	sequences [][]edits.Edit
	// survived are the last edits that were survived, of which sequences are made.
	survived []edits.Edit
	// known are the kinds of confirmed findings, with their IDs.
	known map[string]string
	// variety chooses the faults with which edits are played that were survived.
	variety *faults.Variety
	// faults is how many trials with a fault were played here.
	faults int
	err    error
}

func (q *queue) fill(all []edits.Edit) {
	q.known = map[string]string{}
	for _, f := range q.book.Findings {
		if f.Confirmed() {
			q.known[f.Kind()] = f.Case()
		}
	}
	for _, f := range q.book.Again {
		if t := f.trial(); q.plan.chooses(t) {
			q.again = append(q.again, t)
		}
	}
	for _, e := range all {
		id := trial{edits: []edits.Edit{e}}.id()
		if slices.ContainsFunc(q.again, func(t trial) bool { return t.id() == id }) {
			continue
		}
		if !q.played(id) || q.plan.Faults && !q.disturbed(id) {
			q.edits = append(q.edits, e)
		}
	}
}

// disturbed reports whether an edit that was played needs no faults any more.
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

// take returns the next trial: sequences as soon as there are some.
func (q *queue) take() (trial, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.over.Err() != nil || q.err != nil:
		return trial{}, false
	case len(q.again) > 0:
		next := q.again[0]
		q.again = q.again[1:]
		return next, true
	case len(q.sequences) > 0:
		next := q.sequences[0]
		q.sequences = q.sequences[1:]
		return trial{edits: next}, true
	case len(q.edits) > 0:
		next := q.edits[0]
		q.edits = q.edits[1:]
		return trial{edits: []edits.Edit{next}}, true
	}
	return trial{}, false
}

// inSequence is how many single edits are played for each sequence.
const inSequence = 4

// survive notes an edit that was survived, and makes a sequence of the last ones that do
// not touch the same.
func (q *queue) survive(e edits.Edit) {
	q.survived = append(q.survived, e)
	if len(q.survived) < inSequence {
		return
	}
	sequence := []edits.Edit{}
	for _, next := range q.survived {
		if len(sequence) < 3 && !slices.ContainsFunc(sequence, func(e edits.Edit) bool { return e.Path.Within(next.Path) }) {
			sequence = append(sequence, next)
		}
	}
	q.survived = nil
	if len(sequence) > 1 && !q.played(trial{edits: sequence}.id()) {
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
	// If it was interrupted, the report has the played trials.
	return q.err
}

// lane plays edits in a row.
type lane struct {
	*queue
	name  string
	world *world
	// used: the world is not as it was at first.
	used bool
}

func (l *lane) end() {
	if l.world != nil {
		l.world.session.End()
		l.world = nil
	}
}

// ready makes a world if there is none, and makes one that was used as it was at first:
// by another sandbox if that does not succeed.
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

// play plays a trial, again if that makes a finding certain, and notes the result. It
// returns the trials that follow from it.
func (l *lane) play(ctx context.Context, t trial) []trial {
	begun := time.Now()
	played := results.Played{ID: t.id(), Name: t.name()}
	var found *Finding
	err := l.ready(ctx)
	if err == nil {
		var came outcome
		var problem *Problem
		if t.fault != nil && t.want == nil { // It was found by another run of this command.
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
			// The operator is not to blame.
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

// giveBack has an edit not played that there was no time for.
func (q *queue) giveBack(t trial) {
	if len(t.edits) == 1 && t.fault == nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.edits = append(q.edits, t.edits...)
	}
}

// crash returns the crash of a component of the lane's sandbox, and ends that.
func (l *lane) crash() error {
	if l.world == nil {
		return nil
	}
	err := l.world.session.Crashed()
	if err != nil {
		l.end()
	}
	return err
}

// confirm plays a finding again in a world that is new, with more time to come to rest,
// unless it is certain or one of its kind was confirmed. One with a fault becomes one
// without if that is found.
func (l *lane) confirm(ctx context.Context, found *Finding, t trial) (*Finding, error) {
	l.mu.Lock()
	known := l.known[found.Kind()]
	l.mu.Unlock()
	if found.Problem.certain() {
		return found, nil
	}
	if known != "" {
		found.Like = known
		return found, nil
	}
	l.used = true
	if err := l.ready(ctx); err != nil {
		return found, err
	}
	found.Tries = 1
	quick := l.world.quiet
	l.world.quiet = l.fuzzer.Explorer.Quiet
	again, came, problem, err := l.world.repeat(ctx, t)
	l.world.quiet = quick
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

// mostFaults is how many faults are played with an edit.
const mostFaults = 4

// disturb returns an edit that was survived with faults that were not played yet.
func (l *lane) disturb(t trial) []trial {
	var all []trial
	for _, fault := range l.variety.Choose(l.world.faults, mostFaults) {
		with := trial{edits: t.edits, fault: &fault, want: l.world.edited}
		if !l.played(with.id()) {
			all = append(all, with)
		}
	}
	return all
}

// note notes what came of a trial, and says it. It returns the trials that follow from it.
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
		if found.Confirmed() {
			l.known[found.Kind()] = found.Case()
		}
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
	came := "ok"
	switch {
	case found != nil:
		came = results.Verdict(found)
	case played.Error != "":
		came = "error: " + oneLine(played.Error)
	case played.Outcome != string(accepted) && played.Outcome != string(disturbed):
		came = played.Outcome
	}
	l.book.Progress(l.over, l.plan.Progress, played, came, l.left())
	return then
}

// left is how many trials are probably left.
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
