// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// quietFor returns since when nothing has happened: no write of the operator, and no
// change of any object.
func (r *run) quietFor() time.Duration {
	last := r.stepBegan
	for _, at := range []time.Time{r.log.quietSince(), r.recorder.quietSince()} {
		if at.After(last) {
			last = at
		}
	}
	return time.Since(last)
}

// look is how often it is looked whether all is at rest.
const look = 50 * time.Millisecond

// shortQuiet is how long nothing happens when all is at rest, where nothing slower was
// seen; and lastQuiet, in a step that nothing disturbs, after what is written last. What comes
// later nevertheless comes in the steps that follow.
const (
	shortQuiet = time.Second
	lastQuiet  = 400 * time.Millisecond
)

// quiet returns how long nothing must happen in a step for all to be at rest. Where nothing
// is disturbed, and the last write of the step has come, that is short. An operator that
// waits before it goes on is otherwise given as long as it takes undisturbed.
func (r *run) quiet(step int) time.Duration {
	base := &r.baseline.Steps[step]
	switch f := r.fault; {
	case step == len(r.baseline.Steps)-1:
		return r.baseline.Quiet
	case f != nil && step >= f.Step && step <= f.Until:
		return base.Quiet
	case r.lastWriteCame(base):
		return lastQuiet
	}
	return base.Quiet
}

// lastWriteCame reports whether the operator has written in this step what it writes last.
func (r *run) lastWriteCame(base *BaseStep) bool {
	if base.Lasts == 0 {
		return false
	}
	n := 0
	requests := r.log.since(r.lastIndex())
	for i := range requests {
		if requests[i].writes(r.baseline.Locks) && callOf(&requests[i], r.baseline.names.stable) == base.Last {
			n++
		}
	}
	return n >= base.Lasts
}

// learn waits, in an undisturbed run, until all is at rest, and for how long nothing
// happens before that.
func (r *run) learn(ctx context.Context, step int, at *StepOutcome) error {
	limit := time.After(r.Settle)
	var previous time.Duration
	for {
		quiet := r.quietFor()
		if quiet < previous {
			at.Gap = max(at.Gap, previous)
		}
		previous = quiet
		if quiet >= r.enough() && len(r.watches()) > 0 {
			at.Reads = r.readsIn(quiet)
			at.Gap = min(at.Gap, r.Quiet)
			return nil
		}
		if ends := r.operator.ends(); len(ends) > 0 {
			return fmt.Errorf("the operator ended (%s), though nothing was disturbed; its output ends with\n%s", ends[0], indent(r.operator.output.tail(10)))
		}
		select {
		case <-time.After(look):
		case <-limit:
			if len(r.watches()) == 0 {
				return fmt.Errorf("the operator has not opened a watch in %s: it does not use $KUBECONFIG, or does not start; its output ends with\n%s", r.Settle, indent(r.operator.output.tail(10)))
			}
			return fmt.Errorf("step %d did not come to rest in %s, though nothing was disturbed: the last writes were\n%s", step, r.Settle, indent(r.lastWrites(5)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enough returns how long nothing must happen in an undisturbed run for all to be at rest: longer
// while there is a pod or a claim for which something should happen, as on a machine that is busy.
func (r *run) enough() time.Duration {
	if r.recorder.unfinished() {
		return 3 * r.Quiet
	}
	return r.Quiet
}

// rest waits until all is at rest in a step, or the time is over.
func (r *run) rest(ctx context.Context, step int, limit time.Duration) {
	over := time.After(limit)
	for r.quietFor() < r.quiet(step) {
		select {
		case <-time.After(look):
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settle waits until all is at rest and as in the undisturbed runs, and notes a problem if
// it does not come to that.
func (r *run) settle(ctx context.Context, step int, at *StepOutcome) {
	base := &r.baseline.Steps[step]
	limit := time.After(base.Took + r.Patience)
	for {
		var missing, differences []string
		quiet := r.quietFor() >= r.quiet(step)
		if quiet {
			if missing = r.missingWatches(); len(missing) == 0 {
				want, got := r.fault.comparable(base.State, r.baseline.names.state(r.recorder.objects(), r.baseline.Locks))
				differences = diff(want, got, base.Mask)
			}
			if len(missing)+len(differences) == 0 {
				at.Reads = r.readsIn(r.baseline.Quiet)
				return
			}
		}
		select {
		case <-time.After(look):
		case <-limit:
			switch {
			case !quiet:
				r.problem(NotAtRest, append([]string{r.restless(10 * time.Second)}, r.lastWrites(5)...)...)
			case len(missing) > 0:
				r.problem(NotReached, fmt.Sprintf("the operator does not watch %v any more", missing))
			default:
				r.problem(OtherState, differences...)
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// watches returns the resources that the operator watches.
func (r *run) watches() []string { return r.proxy.Watched() }

// missingWatches returns the resources that the operator watches as soon as it has started,
// and does not watch now: it is not up yet. Others are only watched when they are needed.
func (r *run) missingWatches() []string {
	now := r.watches()
	return slices.DeleteFunc(slices.Clone(r.baseline.AtStart), func(resource string) bool { return slices.Contains(now, resource) })
}

// readsIn counts the reads of the last while.
func (r *run) readsIn(while time.Duration) int {
	n := 0
	since := time.Now().Add(-while)
	for _, request := range r.log.since(r.lastIndex()) {
		if request.Time.After(since) && (request.Verb == "get" || request.Verb == "list") && request.Resource != "" &&
			!slices.Contains(election, request.Resource) && !r.locks()[request.Resource+" "+request.Namespace+"/"+request.Name] {
			n++
		}
	}
	return n
}

// lastIndex is where the requests of the present step begin.
func (r *run) lastIndex() int {
	if n := len(r.outcome.Steps); n > 0 {
		return r.outcome.Steps[n-1].To
	}
	return 0
}

func (r *run) locks() map[string]bool {
	if r.baseline == nil {
		return nil
	}
	return r.baseline.Locks
}

// restless says what happens all the time.
func (r *run) restless(while time.Duration) string {
	often, last := map[string]int{}, ""
	since := time.Now().Add(-while)
	note := func(at time.Time, text string) {
		if at.After(since) {
			if often[text]++; last == "" || often[text] > often[last] || often[text] == often[last] && text < last {
				last = text
			}
		}
	}
	for _, request := range r.log.since(r.lastIndex()) {
		if request.writes(r.locks()) {
			note(request.Time, "the operator's "+Call{Verb: request.Verb, Resource: request.Resource, Namespace: request.Namespace, Name: request.Name}.String())
		}
	}
	if last == "" { // It is not the operator that writes.
		versions, _ := r.recorder.all()
		for i := range versions {
			if v := &versions[i]; !v.Initial && !v.heartbeat() {
				note(v.Time, strings.ToLower(string(v.Type))+" "+v.key())
			}
		}
	}
	if last == "" {
		return "it does not come to rest; the last writes are"
	}
	return fmt.Sprintf("it does not come to rest: %s, %s in the last %s; the last writes are", last, times(often[last]), while)
}

// lastWrites returns the last writes of the operator.
func (r *run) lastWrites(n int) []string {
	var lines []string
	for _, request := range r.log.since(0) {
		if request.writes(r.locks()) {
			lines = append(lines, request.String())
		}
	}
	return lines[max(0, len(lines)-n):]
}
