// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// settle waits until the cluster is quiet and the goal is reached, and returns the state. If
// that takes longer than the limit, it returns a problem. Failures of the operator are returned
// at once.
func (w *world) settle(ctx context.Context, g goal, limit time.Duration) (state.State, *Problem, error) {
	over := time.After(limit)
	var before time.Duration
	for {
		a := w.session.Activity(w.quiet)
		if a.Quiet < before {
			w.gap = max(w.gap, min(before, w.quiet))
		}
		before = a.Quiet
		calm := float64(a.Requests) <= w.base.busy*w.quiet.Seconds()
		if lines := w.session.Failures(); len(lines) > 0 {
			return nil, &Problem{Oracle: judge.Failed, Lines: lines}, nil
		}
		if n := w.session.Objects(); w.objects > 0 && n > w.objects+most {
			return nil, nil, tooManyError(n)
		}
		var state state.State
		var missing *Problem
		if a.Quiet >= w.quiet && calm {
			state = w.state()
			if missing = w.missing(g, state); missing == nil {
				return state, nil, nil
			}
		}
		select {
		case <-time.After(look):
		case <-over:
			if missing == nil {
				missing = w.standing(g)
			}
			switch {
			case missing != nil:
				return state, missing, nil
			case !calm:
				missing = &Problem{Oracle: judge.NotAtRest, Lines: append([]string{
					fmt.Sprintf("%d requests in %s, and it goes on; the last are", a.Requests, w.quiet.Round(100*time.Millisecond)),
				}, slices.Concat(a.Last, w.session.Advice())...)}
			default:
				missing = &Problem{Oracle: judge.NotAtRest, Lines: append([]string{"objects go on changing; the last requests of the operator are"}, slices.Concat(a.Last, w.session.Advice())...)}
			}
			return w.state(), missing, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// standing returns the unmet condition of the goal in a cluster that is not quiet, unless it is
// about objects that keep changing: it may be only a consequence of the changes.
func (w *world) standing(g goal) *Problem {
	p := w.missing(g, w.state())
	return p.standing(w.session.Standing)
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

// missing returns the first unmet condition of the goal in a quiet cluster.
func (w *world) missing(g goal, state state.State) *Problem {
	object := w.find()
	switch {
	case g.learns && len(w.session.Watched()) == 0:
		return &Problem{Oracle: judge.NotReached, Lines: []string{"the operator has not opened a watch: it does not use $KUBECONFIG, or does not start"}}
	case !g.learns && len(w.unwatched()) > 0:
		return &Problem{Oracle: judge.NotReached, Lines: []string{fmt.Sprintf("the operator does not watch %v any more", w.unwatched())}}
	case g.gone && object != nil:
		return &Problem{Oracle: judge.NotReached, Lines: []string{fmt.Sprintf("it was deleted, and is still there, with the finalizers %q", object.GetFinalizers())}}
	case !g.gone && !g.learns && w.base.observed && object != nil && observed(object) != object.GetGeneration():
		return &Problem{Oracle: judge.NotReached, behind: w.written(w.Sample, false).object, Lines: []string{
			fmt.Sprintf("status.observedGeneration is %d, and metadata.generation %d", observed(object), object.GetGeneration()),
		}}
	}
	if g.state == nil {
		return nil
	}
	if differences := w.base.mask.Compare(g.state, state, g.written); len(differences) > 0 {
		return &Problem{Oracle: judge.OtherState, Lines: lines(differences), differences: differences}
	}
	return nil
}

// unwatched returns the resources that the operator watches in the baseline, and does not watch
// now: it is not ready.
func (w *world) unwatched() []string {
	now := w.session.Watched()
	return slices.DeleteFunc(slices.Clone(w.base.watched), func(resource string) bool { return slices.Contains(now, resource) })
}
