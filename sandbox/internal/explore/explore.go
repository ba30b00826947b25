// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Plan says what of all faults to play.
type Plan struct {
	// For is how long to play; 0 is until all is played.
	For time.Duration
	// Only are parts of the names of faults; none is all.
	Only []string
	// Shard and Shards divide the faults among machines: this one plays those with the
	// number Shard, from 1 on.
	Shard, Shards int
	// Jobs is how many sandboxes play side by side.
	Jobs int
	// Progress gets a line for each run.
	Progress io.Writer
}

// Result is what came of exploring.
type Result struct {
	Played   []Played   `json:"played"`
	Findings []*Finding `json:"findings"`
	// Planned is how many faults there are, Left how many of this shard were not played.
	Planned int `json:"planned"`
	Left    int `json:"left"`
	// Streamed are the resources with lists that cannot be stale.
	Streamed []string      `json:"streamed,omitempty"`
	Took     time.Duration `json:"took"`
	Learnt   string        `json:"learnt"`
}

// Played is a fault that was played.
type Played struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Reached bool    `json:"reached"`
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

// Run learns from undisturbed runs, and plays faults.
func (e *Explorer) Run(ctx context.Context, p Plan) (*Result, error) {
	began := time.Now()
	over := ctx
	if p.For > 0 {
		var cancel context.CancelFunc
		over, cancel = context.WithDeadline(ctx, began.Add(p.For))
		defer cancel()
	}
	book, err := openBook(e)
	if err != nil {
		return nil, err
	}
	defer book.close()
	base, a, err := e.learnBaseline(ctx, p.Progress)
	if err != nil {
		return nil, err
	}
	faults := choose(plan(base), p)
	result := &Result{Planned: len(faults), Learnt: base.describe()}
	for _, resource := range base.Watched {
		if !slices.Contains(base.Listed, resource) {
			result.Streamed = append(result.Streamed, resource)
		}
	}
	fmt.Fprintf(p.Progress, "Learnt: %s. There are %d faults to play.\n", result.Learnt, len(faults))
	if len(faults) == 0 {
		return nil, fmt.Errorf("no fault to play: the operator writes nothing and sees no event in this workload, or --only matches nothing")
	}
	result.Played, result.Findings = book.played, book.findings
	if len(a.Problems) > 0 && !slices.ContainsFunc(book.findings, func(f *Finding) bool { return f.Fault == nil }) {
		found := e.newFinding(nil, a, base)
		result.Findings = append(result.Findings, found)
		if err := book.found(found); err != nil {
			return nil, err
		}
	}
	q := &queue{explorer: e, plan: p, base: base, book: book, result: result, over: over, began: began}
	q.fill(faults)
	err = q.run(ctx)
	result.Left = q.left()
	result.Took = time.Since(began)
	return result, err
}

// Prepare makes the state that all runs begin with, if that was not done.
func (e *Explorer) Prepare(ctx context.Context, progress io.Writer) error {
	if e.lab != nil {
		return nil
	}
	lab, err := newLab(filepath.Join(e.Dir, "lab"), e.Workload)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "Installing.")
	if err := lab.prepare(ctx, e.Installed); err != nil {
		return err
	}
	e.lab = lab
	return nil
}

// learnBaseline plays the workload twice without a fault.
func (e *Explorer) learnBaseline(ctx context.Context, progress io.Writer) (*Baseline, *Outcome, error) {
	err := e.Prepare(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	var runs [2]*Outcome
	for i := range runs {
		fmt.Fprintf(progress, "Learning from undisturbed run %d of %d.\n", i+1, len(runs))
		if runs[i], err = e.play(ctx, fmt.Sprintf("learn-%d", i+1), nil, nil); err != nil {
			return nil, nil, err
		}
	}
	base, err := learnFrom(runs[0], runs[1], e.Quiet)
	return base, runs[0], err
}

// describe says what was learnt.
func (b *Baseline) describe() string {
	writes, took := 0, time.Duration(0)
	for i := range b.Steps {
		writes += len(b.Steps[i].Writes)
		took += b.Steps[i].Took
	}
	return fmt.Sprintf("the operator writes %d times and watches %s; a run takes %s, and all is at rest when nothing happens for %s",
		writes, strings.Join(b.Watched, ", "), took.Round(time.Second), b.Quiet.Round(100*time.Millisecond))
}

// choose returns the faults that are to be played here.
func choose(faults []Fault, p Plan) []Fault {
	var chosen []Fault
	for _, f := range faults {
		if len(p.Only) > 0 && !slices.ContainsFunc(p.Only, func(part string) bool { return strings.Contains(f.name(), part) || f.id() == part }) {
			continue
		}
		chosen = append(chosen, f)
	}
	if p.Shards <= 1 {
		return chosen
	}
	var mine []Fault
	for i, f := range chosen {
		if i%p.Shards == p.Shard-1 {
			mine = append(mine, f)
		}
	}
	return mine
}

// queue plays faults, some side by side. Those that wait for minutes have sandboxes of
// their own, because they need no processor meanwhile.
type queue struct {
	explorer *Explorer
	plan     Plan
	base     *Baseline
	book     *book
	result   *Result
	over     context.Context
	began    time.Time

	mu          sync.Mutex
	short, long []Fault
	err         error
}

// longLanes is how many sandboxes wait side by side.
const longLanes = 2

func (q *queue) fill(faults []Fault) {
	for _, f := range faults {
		switch {
		case slices.ContainsFunc(q.book.played, func(p Played) bool { return p.ID == f.id() }):
		case f.Kind == FreezeLong:
			q.long = append(q.long, f)
		default:
			q.short = append(q.short, f)
		}
	}
}

// left returns how many faults were not played.
func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.short) + len(q.long)
}

// take returns the next fault for a lane.
func (q *queue) take(long bool) (Fault, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := &q.short
	if long {
		from = &q.long
		// There must be time for it to end.
		if end, limited := q.over.Deadline(); limited && time.Until(end) < q.explorer.Hold+30*time.Second {
			return Fault{}, false
		}
	}
	if q.over.Err() != nil || q.err != nil || len(*from) == 0 {
		return Fault{}, false
	}
	f := (*from)[0]
	*from = (*from)[1:]
	return f, true
}

func (q *queue) run(ctx context.Context) error {
	var lanes sync.WaitGroup
	lane := func(name string, long bool) {
		lanes.Go(func() {
			for {
				f, ok := q.take(long)
				if !ok {
					return
				}
				q.playOne(ctx, name, f)
			}
		})
	}
	for i := range max(1, q.plan.Jobs) {
		lane(fmt.Sprintf("lane-%d", i+1), false)
	}
	for i := range longLanes {
		lane(fmt.Sprintf("long-%d", i+1), true)
	}
	lanes.Wait()
	// If it was interrupted, the report has what was played.
	return q.err
}

// playOne plays a fault, again if that makes a finding certain, and notes what came of it.
func (q *queue) playOne(ctx context.Context, lane string, f Fault) {
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := time.Now()
	o, err := q.explorer.play(limit, lane, &f, q.base)
	if ctx.Err() != nil {
		return
	}
	played := Played{ID: f.id(), Name: f.name()}
	var found *Finding
	switch {
	case err != nil:
		played.Error = err.Error()
	case len(o.Problems) > 0 && !o.Reached && !slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.certain() }):
		// It is not the fault's doing: the machine may be too slow.
		played.Error = "the fault was not reached, and yet " + o.Problems[0].summary()
	case len(o.Problems) > 0:
		played.Found = true
		found = q.explorer.newFinding(&f, o, q.base)
	}
	if o != nil {
		played.Reached = o.Reached
	}
	if found != nil && !found.confirmed() {
		found.Tries = 1
		if again, err := q.explorer.play(limit, lane, &f, q.base); err == nil && len(again.Problems) > 0 {
			found.Repeated = 1
		}
		if ctx.Err() != nil {
			return
		}
	}
	played.Seconds = time.Since(begun).Seconds()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.result.Played = append(q.result.Played, played)
	if found != nil {
		q.result.Findings = append(q.result.Findings, found)
		if err := q.book.found(found); err != nil && q.err == nil {
			q.err = err
		}
	}
	if err := q.book.note(played); err != nil && q.err == nil {
		q.err = err
	}
	q.progress(played, found)
}

// progress says what came of a fault, and how long the rest takes.
func (q *queue) progress(played Played, found *Finding) {
	result := "ok"
	switch {
	case played.Error != "":
		result = "error: " + oneLine(played.Error)
	case found != nil && found.confirmed():
		result = "FOUND: " + found.title()
	case found != nil:
		result = "found once, and not again: " + found.title()
	case !played.Reached:
		result = "not reached"
	}
	left := len(q.short) + len(q.long)
	done := len(q.result.Played)
	rest := time.Duration(float64(time.Since(q.began)) / float64(max(done, 1)) * float64(left)).Round(time.Second)
	if end, limited := q.over.Deadline(); limited {
		rest = min(rest, max(time.Until(end), 0).Round(time.Second))
	}
	fmt.Fprintf(q.plan.Progress, "[%d of %d, %s to go] %s (%.0f s): %s\n", done, done+left, rest, played.Name, played.Seconds, result)
}

// Replay plays a finding again, once, and returns what came of it: nil if it is not found
// any more.
func (e *Explorer) Replay(ctx context.Context, f *Finding, progress io.Writer) (*Finding, error) {
	base, a, err := e.learnBaseline(ctx, progress)
	if err != nil {
		return nil, err
	}
	if f.Fault == nil {
		if len(a.Problems) == 0 {
			return nil, nil
		}
		return e.newFinding(nil, a, base), nil
	}
	fmt.Fprintf(progress, "Playing %s.\n", f.Fault.name())
	o, err := e.play(ctx, "replay", f.Fault, base)
	switch {
	case err != nil:
		return nil, err
	case !o.Reached && len(o.Problems) == 0:
		return nil, fmt.Errorf("the fault was not reached: this operator does not do in this workload what the finding is about (%s)", f.Fault.name())
	case len(o.Problems) == 0:
		return nil, nil
	}
	again := e.newFinding(f.Fault, o, base)
	again.Repeated, again.Tries = 1, 1
	return again, nil
}
