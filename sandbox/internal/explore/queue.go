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
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// queue injects faults in parallel lanes, which are workers with a sandbox each. Faults that wait
// for minutes (see Effects.Holds) have separate lanes, because they need no CPU while they wait.
type queue struct {
	explorer *Explorer
	plan     Plan
	base     *baseline.Baseline
	book     *results.Book[*Finding]
	over     context.Context
	// play runs the workload with a fault, in the lane with the given name.
	play func(ctx context.Context, lane string, f *faults.Fault, in setting) (*judge.Outcome, error)

	mu          sync.Mutex
	short, long []faults.Planned
	history     *faults.History
	// first is the set of IDs of faults that led to findings with an earlier version of the
	// operator, the workload or other inputs. These faults are injected first, to check whether the
	// problems still exist.
	first map[string]bool
	err   error
}

// Waiting is the number of sandboxes reserved for faults that wait for minutes.
const Waiting = 2

// fill adds to the queue the faults in `all` that have no result yet, or whose results must be
// confirmed again.
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

// left returns the number of queued faults.
func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.short) + len(q.long)
}

// take removes a fault from a queue and returns it. If `long` is set, this is the queue of faults
// that wait for minutes, and otherwise the queue of all other faults. take returns false if the
// queue is empty or too little time remains.
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
			return faults.Fault{}, false // Too little time remains for the fault to end.
		case q.plan.Shrink && left < q.plan.For/5 && len(toShrink(q.book.Findings)) > 0:
			return faults.Fault{}, false
		}
	}
	f := (*from)[i].Fault
	*from = slices.Delete(*from, i, i+1)
	q.history.NotePlayed(&f)
	return f, true
}

// giveBack requeues a fault whose run was interrupted by the deadline or the user.
func (q *queue) giveBack(f faults.Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.short = append(q.short, faults.Planned{Fault: f})
}

// run injects the queued faults until the queue is empty or the deadline has passed.
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
	if q.explorer.Testbeds.OneAtATime() {
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
	// An interrupt is not an error: the report covers the faults that were injected before it.
	return q.err
}

// playOne injects a fault and records the result. It repeats the run if a finding needs
// confirmation.
func (q *queue) playOne(ctx context.Context, lane string, f faults.Fault) {
	begun := time.Now()
	o, err := q.play(q.over, lane, &f, setting{})
	if q.over.Err() != nil {
		q.giveBack(f)
		return
	}
	played := results.Played{ID: f.ID(), Name: f.Name()}
	var found *Finding
	if err != nil {
		played.Error = err.Error()
	} else if played.Error = o.Unjudgeable(); played.Error == "" && len(o.Problems) > 0 {
		played.Found = true
		found = q.explorer.subject().newFinding(&f, o, q.base)
	}
	if o != nil {
		played.Outcome = results.NotReached
		if o.Reached {
			played.Outcome = reached
		}
	}
	if found != nil && !found.Confirmed() {
		q.mu.Lock()
		found.Like = q.book.Like(found)
		q.mu.Unlock()
		played.Unsure = found.Like == "" && !q.timeFor(time.Since(begun))
		if found.Like == "" && !played.Unsure {
			again, err := q.playAgain(lane, found)
			if found = q.secondTime(found, again, err); !q.control(lane, found) {
				found, played.Found = nil, false
			}
			if q.over.Err() != nil && found != nil && !found.Confirmed() {
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
	if q.plan.Timelines && played.Error == "" && !played.Found && o.Reached {
		kept = q.saveTimeline(&f, o)
	}
	before := slices.IndexFunc(q.book.Findings, func(other *Finding) bool { return other.ID == played.ID })
	switch {
	case found != nil:
		found.After = q.book.Elapsed().Seconds()
		q.history.NoteFound(&f)
		kept = q.book.Found(found)
	case before >= 0 && err == nil: // An earlier exploration ran out of time before it could confirm this finding.
		known := q.book.Findings[before]
		known.Tries++
		known.Second = o.DifferentFrom(known.Problems)
		kept = errors.Join(kept, q.book.Save(known))
	}
	if err := errors.Join(kept, q.book.Note(played)); err != nil && q.err == nil {
		q.err = err
	}
	q.progress(played, found)
}

// mostAttempts is the maximum number of attempts to confirm a finding.
const mostAttempts = 3

// playAgain repeats a finding's fault until a run confirms or refutes the finding, at most
// mostAttempts times.
func (q *queue) playAgain(lane string, found *Finding) (again *judge.Outcome, err error) {
	for range mostAttempts {
		again, err = q.play(q.over, lane, found.Fault, setting{new: true})
		if err != nil || q.over.Err() != nil || again.Decides(found.Problems) {
			break
		}
	}
	return again, err
}

// secondTime records in a finding whether the second run `again` has reproduced the problem. If a
// problem of the second run is certain, so that no other run is needed, it returns the finding of
// the second run instead.
func (q *queue) secondTime(found *Finding, again *judge.Outcome, err error) *Finding {
	found.Tries = 1
	switch {
	case err != nil:
		found.Second = "it could not be judged: " + words.OneLine(err.Error())
	case slices.ContainsFunc(again.Problems, func(p judge.Problem) bool { return p.Certain() }):
		found = q.explorer.subject().newFinding(found.Fault, again, q.base)
		found.Tries = 1
	default:
		if found.Second = again.DifferentFrom(found.Problems); found.Second == "" {
			found.Repeated = 1
		}
	}
	return found
}

// timeFor reports whether a run of the given duration would end before the deadline.
func (q *queue) timeFor(run time.Duration) bool {
	end, limited := q.over.Deadline()
	return !limited || time.Now().Add(run).Before(end)
}

// progress prints the result of a fault, and an estimate of the time that the remaining faults will
// take.
func (q *queue) progress(played results.Played, found *Finding) {
	q.book.Progress(q.over, q.plan.Progress, played, found, played.Outcome != results.NotReached, len(q.short)+len(q.long))
}
