// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// goal describes the state that the cluster must have once it no longer changes.
type goal struct {
	// state is the desired state of all objects; nil accepts any state.
	state state.State
	// written is the edited object's content as written by users. The operator may write the same
	// content back in another form, which is not a difference.
	written written
	// gone is set if the edited object must not exist.
	gone bool
	// learns is set right after the operator's start, and while the baseline is learned. The
	// operator must then have an open watch. It need not have observed the object's current
	// generation, nor watch all resources that it watches in the baseline.
	learns bool
	// ready is a condition that the sample must meet; nil accepts any sample.
	ready *condition.Condition
}

const (
	// look is the interval at which the state of the cluster is polled.
	look = 50 * time.Millisecond
	// busy is the number of requests per second above which the operator is considered to be in a
	// hot loop (an endless stream of requests). It is below 5, the default rate limit of client-go.
	// If the operator sends many requests even with the unedited sample, the limit is twice that
	// rate.
	busy = 4
	// mostBusy replaces the limit `busy`, in requests per second, while the baseline is learned.
	mostBusy = 20
	// most is the maximum number of objects in addition to the objects that exist with the unedited
	// sample object. More objects only keep the machine busy, and prove nothing about the operator.
	most = 300
)

// tooManyError is returned if an edit creates too many objects to be judged. Its value is the
// number of objects.
type tooManyError int

func (n tooManyError) Error() string {
	return fmt.Sprintf("there are %d objects, which is too many to judge the edit on one machine", int(n))
}

// waiter waits until the cluster is quiet and in the desired state, the goal.
type waiter struct {
	base   *baseline
	record *record
	object *editedObject
	// failures returns a line for each failure of the operator. watched returns the resources that
	// the operator watches.
	failures func() []string
	watched  func() []string
	// patience is the time by which the operator's reaction to an edit may last longer than its
	// reaction to the creation of the sample object.
	patience time.Duration
	// quiet is the time without changes after which the cluster is considered quiet. gap is the
	// longest observed pause between two changes, but no longer than quiet.
	quiet, gap time.Duration
	// objects is the number of objects in the cluster with the unedited sample object, or 0 if this
	// number is not known yet.
	objects int
}

// limit returns the maximum duration of the operator's reaction to an edit.
func (w *waiter) limit() time.Duration { return w.base.took + w.patience }

// reach waits until the cluster is quiet and has reached the goal, but no longer than the
// operator's reaction to an edit may take.
func (w *waiter) reach(ctx context.Context, g goal) (state.State, *Problem, error) {
	return w.wait(ctx, g, w.limit())
}

// wait waits until the cluster is quiet and has reached the goal, and returns the state. It returns
// a problem if this takes longer than `limit`. If the operator fails, it returns that failure
// immediately.
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
				// Ignore differences in objects that keep changing: such objects may differ only
				// because their change is not complete.
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

// restless returns the problem of a cluster that does not become quiet. `calm` is set if the
// operator sends few requests, so that changing objects are the reason.
func restless(a *activity, calm bool, quiet time.Duration, advice []string) *Problem {
	headline := "objects go on changing; the last requests of the operator are"
	if !calm {
		headline = fmt.Sprintf("%d requests in %s, and it goes on; the last are", a.requests, quiet.Round(100*time.Millisecond))
	}
	return &Problem{Oracle: judge.NotAtRest, Lines: slices.Concat([]string{headline}, a.last, advice)}
}

// begun waits until the operator sends a request in response to fuzz's last action. If the operator
// sends no request, begun returns after the quiet time.
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

// standing removes from the problem all differences in objects that keep changing, and returns nil
// if no difference remains. `still` selects the differences in objects that no longer change.
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

// sight is a snapshot of the cluster's state, for comparison with a goal.
type sight struct {
	state state.State
	// object is the edited object, or nil if it does not exist. key is the object's key in the
	// state.
	object *unstructured.Unstructured
	key    string
	// watched lists the resources that the operator watches at the time of the snapshot.
	watched []string
	// objects returns all objects, for conditions that use them.
	objects func() []observe.Version
}

// unready returns why the edited object does not meet a condition, or "" if it does or there is none.
func (s *sight) unready(ready *condition.Condition) string {
	switch {
	case ready == nil:
		return ""
	case s.object == nil:
		return "the object is not there"
	}
	lists := func() any {
		all := map[string][]any{}
		for _, v := range s.objects() {
			all[v.Resource] = append(all[v.Resource], v.Object.Object)
		}
		return all
	}
	is, why := ready.HoldsWith(s.object.Object, nil, map[string]any{workload.ObjectsVariable: lists})
	if is {
		return ""
	}
	return cmp.Or(why, "it is false")
}

// sight returns the current state of the cluster.
func (w *waiter) sight() sight {
	return sight{w.record.state(), w.object.find(), w.object.written(w.object.sample, false).object, w.watched(), w.record.settler.Recorder.Objects}
}

// unmet returns a problem for the goal's first condition that the cluster does not meet, or nil if
// it meets all conditions.
func (b *baseline) unmet(g goal, s *sight) *Problem {
	notReached := func(format string, args ...any) *Problem {
		return &Problem{Oracle: judge.NotReached, Lines: []string{fmt.Sprintf(format, args...)}}
	}
	unready := s.unready(g.ready)
	unwatched := slices.DeleteFunc(slices.Clone(b.watched), func(resource string) bool { return slices.Contains(s.watched, resource) })
	switch {
	case g.learns && len(s.watched) == 0:
		return notReached("the operator has not opened a watch: it does not use $KUBECONFIG, or does not start")
	case unready != "":
		return notReached("the sample does not get ready: --ready: %s", unready)
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

// observed returns an object's status.observedGeneration, or 0 if it is not set.
func observed(o *unstructured.Unstructured) int64 {
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return generation
}
