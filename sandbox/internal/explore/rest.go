// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// learn waits in a baseline run until the cluster is quiet, and stores the longest pause between
// two changes of the step in at.Gap. An error ends the exploration. learn returns an error if the
// operator exits, does not open a watch, or keeps the cluster busy for longer than Limits.Settle.
func (r *run) learn(ctx context.Context, step int, at *observe.StepOutcome) error {
	limit := time.After(r.Limits.Settle)
	var previous time.Duration
	for {
		quiet := r.settler.QuietFor()
		if quiet < previous {
			at.Gap = max(at.Gap, previous)
		}
		previous = quiet
		if enough := r.settler.Enough(); quiet >= enough && len(r.settler.Watches()) > 0 {
			at.Reads, at.Idle = r.settler.RequestsIn(quiet)
			at.Gap = min(at.Gap, r.settler.Most)
			r.outcome.Habits = append(r.outcome.Habits, r.testbed.Habits.Learnt(enough)...)
			return nil
		}
		if ends := r.testbed.Operator.Ends(); len(ends) > 0 {
			return fmt.Errorf("the operator exited (%s) in a run without faults; its last output:\n%s", ends[0], words.Indent(r.testbed.Operator.Output.Tail(10)))
		}
		select {
		case <-time.After(observe.Look):
		case <-limit:
			if len(r.settler.Watches()) == 0 {
				return fmt.Errorf("the operator has not opened a watch in %s: it does not use $KUBECONFIG, or does not start; its last output:\n%s", r.Limits.Settle, words.Indent(r.testbed.Operator.Output.Tail(10)))
			}
			return fmt.Errorf("step %d did not become quiet within %s in a run without faults: %s\n%s", step, r.Limits.Settle, r.settler.Restless(r.Limits.Settle), words.Indent(append(r.settler.LastWrites(5), r.settler.Advice()...)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// restarted restarts the operator at the end of a baseline run, and returns the resources that it
// then watches. Some operators watch a resource only at their first start in a cluster, for example
// to migrate its objects. restarted returns nil, so that nothing is learned, if the operator exits or
// keeps the cluster busy for longer than Limits.Settle.
func (r *run) restarted(ctx context.Context) ([]string, error) {
	limit := time.After(r.Limits.Settle)
	r.testbed.Operator.Kill()
	again, first := false, r.outcome.Steps[0]
	// A start is over when all watches of the first one are open, or if nothing happens for long.
	over := func(now []string) bool {
		return sets.New(now...).HasAll(first.Watches...) || len(now) > 0 && r.settler.QuietFor() >= first.Took+r.settler.Enough()
	}
	for {
		now := r.settler.Watches()
		switch {
		case !again && len(now) == 0: // The proxy has noticed that the killed process is gone.
			if err := r.injector.Crash(ctx); err != nil {
				return nil, err
			}
			again = true
		case again && over(now):
			return now, nil
		case again && len(r.testbed.Operator.Ends()) > 0:
			return nil, nil
		}
		select {
		case <-time.After(observe.Look):
		case <-limit:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// settle waits until the cluster is quiet and its objects match the step's baseline. In the last
// step, it also waits until it is clear whether the operator is in a hot loop (continuous
// requests). If the objects do not match within the step's duration in the baseline plus
// Limits.Patience, settle adds the differences to the run's problems.
func (r *run) settle(ctx context.Context, step int) {
	base := &r.baseline.Steps[step]
	limit := time.After(base.Took + r.Limits.Patience)
	rest, counted := judge.NewRest(base, r.baseline.Quiet), time.Time{}
	for {
		end := judge.StepEnd{Step: step, Quiet: r.settler.QuietFor() >= r.settler.Quiet(step), Unwatched: r.settler.MissingWatches()}
		if end.Quiet && len(end.Unwatched) == 0 {
			end.Differences = r.judge.Differences(base)
		}
		if end.AsBaseline() {
			if time.Since(counted) >= r.baseline.Quiet {
				rest.Add(r.settler.RequestsIn(r.baseline.Quiet))
				counted = time.Now()
			}
			if step < len(r.baseline.Steps)-1 || !rest.Open() {
				r.outcome.Rest = rest
				return
			}
		}
		select {
		case <-time.After(observe.Look):
		case <-limit:
			if end.AsBaseline() {
				return
			}
			end.Differences, end.Unwatched = r.judge.Differences(base), r.settler.MissingWatches()
			r.outcome.Problems = append(r.outcome.Problems, end.Problems(r.standing, r.restless)...)
			return
		case <-ctx.Done():
			return
		}
	}
}

// standing returns the given differences from the baseline without differences in objects that have
// changed within observe.RestlessFor.
func (r *run) standing(differences []state.Difference) []state.Difference {
	versions, _ := r.testbed.Recorder.All()
	return observe.Standing(differences, r.baseline.Names, versions, time.Now().Add(-observe.RestlessFor))
}

// restless describes the changes that keep the cluster from becoming quiet.
func (r *run) restless() []string {
	return slices.Concat([]string{r.settler.Restless(observe.RestlessFor)}, r.settler.LastWrites(5), r.settler.Advice())
}
