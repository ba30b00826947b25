// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// goal is the expected state, in which the cluster must become quiet.
type goal struct {
	// state is the desired state of all objects; nil: any.
	state state.State
	// written is the content of the edited object as users wrote it; the operator may write it in
	// another form.
	written written
	// gone is set if the edited object must not exist.
	gone bool
	// learns is set right after a start of the operator and while learning the baseline: the
	// operator must open a watch, and a problem is an error in the input of the user.
	learns bool
}

const (
	// look is the interval of polling.
	look = 50 * time.Millisecond
	// busy is the number of requests a second that counts as a hot loop if it continues: client-go
	// allows 5 by default. If the operator sends many requests with the unedited sample, twice that
	// number is the limit.
	busy = 4
	// mostBusy is the limit while learning the baseline, in requests a second.
	mostBusy = 20
	// most is the maximum number of objects beyond the number with the sample. More only keep the
	// machine busy, and say nothing about the operator.
	most = 300
)

// tooManyError is the error of an edit that creates too many objects to be judged; its value is
// the number of objects.
type tooManyError int

func (n tooManyError) Error() string {
	return fmt.Sprintf("there are %d objects, which is too many to judge the edit on one machine", int(n))
}

// waiter waits until the cluster is quiet and in the expected state.
type waiter struct {
	base   *baseline
	record *record
	object *editedObject
	// failures returns the failures of the operator, and watched the resources that it watches.
	failures func() []string
	watched  func() []string
	// patience is the additional time of a reaction, beyond the time in the baseline.
	patience time.Duration
	// quiet is the time without a change after which the cluster counts as quiet, gap the longest
	// pause between two changes so far.
	quiet, gap time.Duration
	// objects is the number of objects with the sample; 0: not known yet.
	objects int
}

// limit returns the time that the operator has to react to an edit.
func (w *waiter) limit() time.Duration { return w.base.took + w.patience }

// reach waits for the goal, for as long as the operator has to react to an edit.
func (w *waiter) reach(ctx context.Context, g goal) (state.State, *Problem, error) {
	return w.wait(ctx, g, w.limit())
}

// wait waits until the cluster is quiet and the goal is reached, and returns the state. If
// that takes longer than the limit, it returns a problem. Failures of the operator are returned
// at once.
func (w *waiter) wait(ctx context.Context, g goal, limit time.Duration) (state.State, *Problem, error) {
	over := time.After(limit)
	var before time.Duration
	for {
		a := w.record.activity(w.quiet)
		if a.quiet < before {
			w.gap = max(w.gap, min(before, w.quiet))
		}
		before = a.quiet
		calm := float64(a.requests) <= w.base.busy*w.quiet.Seconds()
		if lines := w.failures(); len(lines) > 0 {
			return nil, &Problem{Oracle: judge.Failed, Lines: lines}, nil
		}
		if n := w.record.settler.Recorder.Count(); w.objects > 0 && n > w.objects+most {
			return nil, nil, tooManyError(n)
		}
		var now sight
		var problem *Problem
		quiet := a.quiet >= w.quiet && calm
		if quiet {
			now = w.sight()
			if problem = w.base.unmet(g, &now); problem == nil {
				return now.state, nil, nil
			}
		}
		select {
		case <-time.After(look):
		case <-over:
			if !quiet {
				// A condition about an object that keeps changing may be only a consequence of that.
				now = w.sight()
				if problem = w.base.unmet(g, &now).standing(w.record.standing); problem == nil {
					problem = restless(&a, calm, w.quiet, w.record.settler.Advice())
				}
			}
			return now.state, problem, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// restless returns the problem of a cluster that does not become quiet; calm is set if the operator
// does not send many requests.
func restless(a *activity, calm bool, quiet time.Duration, advice []string) *Problem {
	headline := "objects go on changing; the last requests of the operator are"
	if !calm {
		headline = fmt.Sprintf("%d requests in %s, and it goes on; the last are", a.requests, quiet.Round(100*time.Millisecond))
	}
	return &Problem{Oracle: judge.NotAtRest, Lines: slices.Concat([]string{headline}, a.last, advice)}
}

// begun waits until the operator reacts to the last action, or for the quiet time, if there is
// nothing to react to.
func (w *waiter) begun(ctx context.Context) error {
	since := time.Now()
	for time.Since(since) < w.quiet && w.record.activity(time.Since(since)).requests == 0 {
		select {
		case <-time.After(look / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// standing returns the problem without differences in objects that keep changing, which still
// leaves out; nil if nothing is left.
func (p *Problem) standing(still func([]Difference) []Difference) *Problem {
	switch {
	case p == nil:
		return nil
	case p.behind != "" && len(still([]Difference{{Object: p.behind}})) == 0:
		return nil
	case p.Oracle != judge.OtherState:
		return p
	}
	if p.differences = still(p.differences); len(p.differences) == 0 {
		return nil
	}
	p.Lines = lines(p.differences)
	return p
}

// sight is the state of a cluster at one time, as a goal is compared with it.
type sight struct {
	state state.State
	// object is the edited object, nil if it does not exist, and key its key in the state.
	object *unstructured.Unstructured
	key    string
	// watched are the resources that the operator watches.
	watched []string
}

// sight looks at the cluster.
func (w *waiter) sight() sight {
	return sight{w.record.state(), w.object.find(), w.object.written(w.object.sample, false).object, w.watched()}
}

// unmet returns the first unmet condition of the goal in a cluster, or nil.
func (b *baseline) unmet(g goal, s *sight) *Problem {
	notReached := func(format string, args ...any) *Problem {
		return &Problem{Oracle: judge.NotReached, Lines: []string{fmt.Sprintf(format, args...)}}
	}
	unwatched := slices.DeleteFunc(slices.Clone(b.watched), func(resource string) bool { return slices.Contains(s.watched, resource) })
	switch {
	case g.learns && len(s.watched) == 0:
		return notReached("the operator has not opened a watch: it does not use $KUBECONFIG, or does not start")
	case !g.learns && len(unwatched) > 0:
		return notReached("the operator does not watch %v any more", unwatched)
	case g.gone && s.object != nil:
		return notReached("it was deleted, and is still there, with the finalizers %q", s.object.GetFinalizers())
	case !g.gone && !g.learns && b.observed && s.object != nil && observed(s.object) != s.object.GetGeneration():
		problem := notReached("status.observedGeneration is %d, and metadata.generation %d", observed(s.object), s.object.GetGeneration())
		problem.behind = s.key
		return problem
	}
	if g.state == nil {
		return nil
	}
	if differences := b.mask.Compare(g.state, s.state, g.written); len(differences) > 0 {
		return &Problem{Oracle: judge.OtherState, Lines: lines(differences), differences: differences}
	}
	return nil
}

// observed returns the status.observedGeneration of an object, 0 if there is none.
func observed(o *unstructured.Unstructured) int64 {
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return generation
}
