// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// quietFor returns since when nothing has happened: no change of any object, and no write of the
// operator that was refused. Writes that change nothing and habits do not count.
func (r *run) quietFor() time.Duration {
	return r.habits.quiet(r.stepBegan, time.Now(), r.enough())
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
		if enough := r.enough(); quiet >= enough && len(r.watches()) > 0 {
			at.Reads, at.Idle = r.requestsIn(quiet)
			at.Gap = min(at.Gap, r.Quiet)
			r.outcome.Habits = append(r.outcome.Habits, r.habits.learnt(enough)...)
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
			return fmt.Errorf("step %d did not come to rest in %s, though nothing was disturbed: %s\n%s", step, r.Settle, r.restless(r.Settle), indent(append(r.lastWrites(5), r.advice()...)))
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
		quiet := r.quietFor() >= r.quiet(step)
		if quiet && len(r.missingWatches()) == 0 && len(r.differences(base)) == 0 {
			at.Reads, at.Idle = r.requestsIn(r.baseline.Quiet)
			return
		}
		select {
		case <-time.After(look):
		case <-limit:
			r.unsettled(base, quiet)
			return
		case <-ctx.Done():
			return
		}
	}
}

// differences are those from what the step comes to undisturbed.
func (r *run) differences(base *BaseStep) []state.Difference {
	want, got := r.fault.comparable(base.State, r.baseline.names.state(r.recorder.objects(), r.baseline.Locks))
	if r.fault.effects().OtherClientWrites && handedOn(r.recorder.objects(), r.touched) {
		want, got = withoutRevisions(want), withoutRevisions(got)
	}
	return state.Compare(want, got, base.Mask, state.Rules{})
}

// restlessFor is over which time it is looked what happens all the time.
const restlessFor = 10 * time.Second

// unsettled notes why a step does not come to where it does undisturbed. What is missing or wrong
// comes before what goes on, which may be only because of that.
func (r *run) unsettled(base *BaseStep, quiet bool) {
	differences := r.differences(base)
	if missing := r.missingWatches(); len(missing) > 0 {
		r.problem(NotReached, fmt.Sprintf("the operator does not watch %v any more", missing))
		return
	}
	if !quiet {
		versions, _ := r.recorder.all()
		differences = standing(differences, r.baseline.names, versions, time.Now().Add(-restlessFor))
	}
	if len(differences) > 0 {
		r.problem(OtherState, state.Lines(differences)...)
	}
	if !quiet {
		r.problem(NotAtRest, slices.Concat([]string{r.restless(restlessFor)}, r.lastWrites(5), r.advice())...)
	}
}

// standing are the differences that do not come and go: of objects that have not changed since a
// moment, nor been made again.
func standing(all []state.Difference, names anonymizer, versions []Version, since time.Time) []state.Difference {
	moving := map[string]bool{}
	for i := range versions {
		if v := &versions[i]; !v.Initial && v.Time.After(since) && v.Type != watch.Deleted {
			moving[names.key(v)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(d state.Difference) bool { return moving[d.Object] })
}

// watches returns the resources that the operator watches.
func (r *run) watches() []string { return r.proxy.Watched() }

// missingWatches returns the resources that the operator watches as soon as it has started,
// and does not watch now: it is not up yet. Others are only watched when they are needed.
func (r *run) missingWatches() []string {
	now := r.watches()
	return slices.DeleteFunc(slices.Clone(r.baseline.AtStart), func(resource string) bool { return slices.Contains(now, resource) })
}

// requestsIn counts the reads and the writes of the last while.
func (r *run) requestsIn(while time.Duration) (reads, writes int) {
	since := time.Now().Add(-while)
	for _, request := range r.log.since(r.lastIndex()) {
		switch {
		case !request.Time.After(since):
		case request.writes(r.locks()):
			writes++
		case (request.Verb == "get" || request.Verb == "list") && request.Resource != "" &&
			!slices.Contains(election, request.Resource) && !r.locks()[request.Resource+" "+request.Namespace+"/"+request.Name]:
			reads++
		}
	}
	return reads, writes
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
	versions, _ := r.recorder.all()
	return restless(r.log.since(r.lastIndex()), versions, r.locks(), while, time.Now())
}

// restless says what happens all the time, in a while before now: of the operator's writes that
// changed something or were refused, or else of all that changed.
func restless(requests []Request, versions []Version, locks map[string]bool, while time.Duration, now time.Time) string {
	often, last := map[string]int{}, ""
	since := now.Add(-while)
	note := func(text string) {
		if often[text]++; last == "" || often[text] > often[last] || often[text] == often[last] && text < last {
			last = text
		}
	}
	changed := map[string]bool{}
	for i := range versions {
		if v := &versions[i]; !v.Initial && !v.Habit && v.Time.After(since) {
			changed[v.key()] = true
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.writes(locks) && r.Time.After(since) && (changed[nameKey(r.Resource, r.Namespace, r.Name)] || !r.succeeded() && !r.deletesNothing()) {
			note("the operator's " + Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}.String())
		}
	}
	if last == "" { // It is not the operator that writes.
		for i := range versions {
			if v := &versions[i]; !v.Initial && !v.Habit && !v.heartbeat() && v.Time.After(since) {
				note(strings.ToLower(string(v.Type)) + " " + v.key())
			}
		}
	}
	if last == "" {
		return "it does not come to rest; the last writes are"
	}
	return fmt.Sprintf("it does not come to rest: %s, %s in the last %s; the last writes are", last, times(often[last]), while)
}

// unjudge says how users have a field not judged.
func (r *run) unjudge(resource, path string) string {
	if r.Unjudge != nil {
		return r.Unjudge(resource, path)
	}
	return unjudgedLine(resource, path)
}

// advice says how all may come to rest nevertheless.
func (r *run) advice() []string {
	versions, _ := r.recorder.all()
	return advice(versions, time.Now().Add(-restlessFor), r.Quiet, r.unjudge)
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
