// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// learn waits, in an undisturbed run, until all is at rest, and for how long nothing
// happens before that.
func (r *run) learn(ctx context.Context, step int, at *StepOutcome) error {
	limit := time.After(r.Settle)
	var previous time.Duration
	for {
		quiet := r.settler.quietFor()
		if quiet < previous {
			at.Gap = max(at.Gap, previous)
		}
		previous = quiet
		if enough := r.settler.enough(); quiet >= enough && len(r.settler.watches()) > 0 {
			at.Reads, at.Idle = r.settler.requestsIn(quiet)
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
			if len(r.settler.watches()) == 0 {
				return fmt.Errorf("the operator has not opened a watch in %s: it does not use $KUBECONFIG, or does not start; its output ends with\n%s", r.Settle, indent(r.operator.output.tail(10)))
			}
			return fmt.Errorf("step %d did not come to rest in %s, though nothing was disturbed: %s\n%s", step, r.Settle, r.settler.restless(r.Settle), indent(append(r.settler.lastWrites(5), r.settler.advice()...)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle waits until all is at rest and as in the undisturbed runs, and notes a problem if
// it does not come to that.
func (r *run) settle(ctx context.Context, step int, at *StepOutcome) {
	base := &r.baseline.Steps[step]
	limit := time.After(base.Took + r.Patience)
	for {
		quiet := r.settler.quietFor() >= r.settler.quiet(step)
		if quiet && len(r.settler.missingWatches()) == 0 && len(r.judge.differences(base)) == 0 {
			at.Reads, at.Idle = r.settler.requestsIn(r.baseline.Quiet)
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

// unsettled notes why a step does not come to where it does undisturbed. What is missing or wrong
// comes before what goes on, which may be only because of that.
func (r *run) unsettled(base *BaseStep, quiet bool) {
	differences := r.judge.differences(base)
	if missing := r.settler.missingWatches(); len(missing) > 0 {
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
		r.problem(NotAtRest, slices.Concat([]string{r.settler.restless(restlessFor)}, r.settler.lastWrites(5), r.settler.advice())...)
	}
}
