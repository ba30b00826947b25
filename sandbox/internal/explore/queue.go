// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/words"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// queue plays faults, some side by side. Faults that wait for minutes have sandboxes of
// their own, because they need no processor meanwhile.
type queue struct {
	explorer *Explorer
	plan     Plan
	base     *baseline.Baseline
	book     *results.Book[*Finding]
	over     context.Context
	began    time.Time

	mu          sync.Mutex
	short, long []faults.Planned
	history     *faults.History
	// first are the IDs of faults with which something was found before, with another program
	// or other files. They are played first.
	first map[string]bool
	err   error
}

// Waiting is how many sandboxes wait for minutes, side by side.
const Waiting = 2

// fill takes the faults that were not played before, or could not be judged then.
func (q *queue) fill(all []faults.Planned) {
	q.first = map[string]bool{}
	for _, f := range q.book.Again {
		q.first[f.ID] = true
	}
	for _, f := range all {
		i := slices.IndexFunc(q.book.Played, func(p results.Played) bool { return p.ID == f.ID() })
		switch {
		case i >= 0 && q.book.Played[i].Done() && !q.first[f.ID()]:
			q.history.NotePlayed(&f.Fault)
			if q.book.Played[i].Found {
				q.history.NoteFound(&f.Fault)
			}
		case f.Effects().Holds:
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
func (q *queue) take(long bool) (faults.Fault, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := &q.short
	if long {
		from = &q.long
	}
	i := slices.IndexFunc(*from, func(f faults.Planned) bool { return q.first[f.ID()] })
	if i < 0 {
		i = q.history.Next(*from)
	}
	if q.over.Err() != nil || q.err != nil || i < 0 {
		return faults.Fault{}, false
	}
	if end, limited := q.over.Deadline(); limited {
		left := time.Until(end)
		switch {
		case long && left < q.explorer.Hold+30*time.Second:
			return faults.Fault{}, false // There must be time for it to end.
		case q.plan.Shrink && left < q.plan.For/5 && len(toShrink(q.book.Findings)) > 0:
			return faults.Fault{}, false
		}
	}
	f := (*from)[i].Fault
	*from = slices.Delete(*from, i, i+1)
	q.history.NotePlayed(&f)
	return f, true
}

// giveBack has a fault not played that there was no time for.
func (q *queue) giveBack(f faults.Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.short = append(q.short, faults.Planned{Fault: f})
}

// run plays all faults, or as many as there is time for.
func (q *queue) run(ctx context.Context) error {
	var lanes sync.WaitGroup
	lane := func(name string, kinds ...bool) {
		lanes.Go(func() {
			for _, long := range kinds {
				for f, ok := q.take(long); ok; f, ok = q.take(long) {
					q.playOne(ctx, name, f)
				}
			}
		})
	}
	const short, long = false, true
	if q.explorer.OneAtATime() {
		lane("lane-1", short, long)
		lanes.Wait()
		return q.err
	}
	for i := range max(1, q.plan.Jobs) {
		lane(fmt.Sprintf("lane-%d", i+1), short)
	}
	for i := range Waiting {
		lane(fmt.Sprintf("long-%d", i+1), long)
	}
	lanes.Wait()
	// If it was interrupted, the report has the played faults.
	return q.err
}

// playOne plays a fault, again if that makes a finding certain, and notes the result.
func (q *queue) playOne(ctx context.Context, lane string, f faults.Fault) {
	begun := time.Now()
	o, err := q.explorer.play(q.over, lane, &f, q.base, setting{})
	if q.over.Err() != nil {
		q.giveBack(f)
		return
	}
	played := results.Played{ID: f.ID(), Name: f.Name()}
	var found *Finding
	switch {
	case err != nil:
		played.Error = err.Error()
	case len(o.Problems) > 0 && !o.Reached && !slices.ContainsFunc(o.Problems, func(p judge.Problem) bool { return p.Certain() }):
		// It is not the fault's doing: the machine may be too slow.
		played.Error = "the fault was not reached, and yet " + o.Problems[0].Summary()
	case len(o.Problems) > 0:
		played.Found = true
		found = q.explorer.newFinding(&f, o, q.base)
	}
	if o != nil {
		played.Outcome = results.NotReached
		if o.Reached {
			played.Outcome = reached
		}
	}
	if found != nil && !found.Confirmed() {
		found.Like = q.like(found)
		played.Unsure = found.Like == "" && !q.timeFor(time.Since(begun))
		if found.Like == "" && !played.Unsure {
			again, err := q.explorer.play(q.over, lane, &f, q.base, setting{new: true})
			found = q.secondTime(found, again, err)
			if q.over.Err() != nil && !found.Confirmed() {
				found.Tries, found.Second, played.Unsure = 0, "", true
			}
			if ctx.Err() != nil {
				q.giveBack(f)
				return
			}
		}
	}
	played.Seconds = time.Since(begun).Seconds()
	q.mu.Lock()
	defer q.mu.Unlock()
	var kept error
	before := slices.IndexFunc(q.book.Findings, func(other *Finding) bool { return other.ID == played.ID })
	switch {
	case found != nil:
		found.After = time.Since(q.began).Seconds()
		q.history.NoteFound(&f)
		kept = q.book.Found(found)
	case before >= 0 && err == nil: // There was no time to play it again, and now there was.
		known := q.book.Findings[before]
		known.Tries++
		known.Second = known.different(o)
		kept = q.book.Save(known)
	}
	if err := errors.Join(kept, q.book.Note(played)); err != nil && q.err == nil {
		q.err = err
	}
	q.progress(played, found)
}

// secondTime notes what came of playing the fault of a finding again: it was found again, or
// something else was, which is the finding if that is certain.
func (q *queue) secondTime(found *Finding, again *judge.Outcome, err error) *Finding {
	found.Tries = 1
	switch {
	case err != nil:
		found.Second = "it could not be judged: " + words.OneLine(err.Error())
	case slices.ContainsFunc(again.Problems, func(p judge.Problem) bool { return p.Certain() }):
		found = q.explorer.newFinding(found.Fault, again, q.base)
		found.Tries = 1
	default:
		if found.Second = found.different(again); found.Second == "" {
			found.Repeated = 1
		}
	}
	return found
}

// timeFor reports whether there is time for a run that takes so long.
func (q *queue) timeFor(run time.Duration) bool {
	end, limited := q.over.Deadline()
	return !limited || time.Now().Add(run).Before(end)
}

// like returns the ID of a finding that is certain and shows probably the same mistake, so
// that time is better spent on others.
func (q *queue) like(f *Finding) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, other := range q.book.Findings {
		if other.Confirmed() && other.Kind() == f.Kind() {
			return other.ID
		}
	}
	return ""
}

// progress prints the result of a fault, and how long the rest takes.
func (q *queue) progress(played results.Played, found *Finding) {
	came := "ok"
	switch {
	case found != nil:
		came = results.Verdict(found)
	case played.Error != "":
		came = "error: " + words.OneLine(played.Error)
	case played.Outcome == results.NotReached:
		came = played.Outcome
	}
	q.book.Progress(q.over, q.plan.Progress, played, came, len(q.short)+len(q.long))
}
