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
	// edits are those of one property that are left, and sequences those of several that
	// were survived one by one.
	edits     []edits.Edit
	sequences [][]edits.Edit
	// survived are the last ones, of which sequences are made.
	survived []edits.Edit
	known    map[string]bool
	err      error
}

func (q *queue) fill(all []edits.Edit) {
	q.known = map[string]bool{}
	for _, f := range q.book.Findings {
		q.known[f.Kind()] = true
	}
	for _, e := range all {
		if !q.played(id(e)) {
			q.edits = append(q.edits, e)
		}
	}
}

func (q *queue) played(id string) bool {
	return slices.ContainsFunc(q.book.Played, func(p results.Played) bool { return p.ID == id })
}

// take returns what is played next: sequences as soon as there are some.
func (q *queue) take() ([]edits.Edit, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.over.Err() != nil || q.err != nil:
		return nil, false
	case len(q.sequences) > 0:
		next := q.sequences[0]
		q.sequences = q.sequences[1:]
		return next, true
	case len(q.edits) > 0:
		next := q.edits[0]
		q.edits = q.edits[1:]
		return []edits.Edit{next}, true
	}
	return nil, false
}

// inSequence is how many edits of one property are played for one of several.
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
	if len(sequence) > 1 && !q.played(id(sequence...)) {
		q.sequences = append(q.sequences, sequence)
	}
}

func (q *queue) run(ctx context.Context, first *world) error {
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
				l.play(ctx, next)
			}
		})
	}
	lanes.Wait()
	// If it was interrupted, the report has what was played.
	return q.err
}

// lane plays edits one after the other.
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

// play plays edits, again if that makes a finding certain, and notes what came of it.
func (l *lane) play(ctx context.Context, all []edits.Edit) {
	begun := time.Now()
	played := results.Played{ID: id(all...), Name: name(all)}
	var found *Finding
	err := l.ready(ctx)
	if err == nil {
		var came outcome
		var problem *Problem
		came, problem, err = l.world.play(ctx, all)
		played.Outcome = string(came)
		if problem != nil {
			found = l.fuzzer.newFinding(all, came, problem, l.world)
			played.Found = true
			err = l.confirm(ctx, found)
		}
	}
	if ctx.Err() != nil {
		return
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
	l.note(played, found, all)
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
// unless it is certain or one of its kind was confirmed.
func (l *lane) confirm(ctx context.Context, found *Finding) error {
	l.mu.Lock()
	known := l.known[found.Kind()]
	l.mu.Unlock()
	if found.Problem.certain() {
		return nil
	}
	if known {
		found.Repeated = 1
		return nil
	}
	l.used = true
	if err := l.ready(ctx); err != nil {
		return err
	}
	found.Tries = 1
	quick := l.world.quiet
	l.world.quiet = l.fuzzer.Explorer.Quiet
	_, problem, err := l.world.play(ctx, found.Edits)
	l.world.quiet = quick
	if problem != nil {
		found.Repeated = 1
	}
	return err
}

// note notes what came of edits, and says it.
func (l *lane) note(played results.Played, found *Finding, all []edits.Edit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept error
	switch {
	case found != nil:
		if found.Confirmed() {
			l.known[found.Kind()] = true
		}
		kept = l.book.Found(found)
	case played.Outcome == string(accepted) && played.Error == "" && len(all) == 1:
		l.survive(all[0])
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
	case played.Outcome != string(accepted):
		came = played.Outcome
	}
	l.book.Progress(l.over, l.plan.Progress, played, came, len(l.edits)+len(l.sequences))
}
