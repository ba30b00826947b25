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

// goal is the condition under which all is settled, beside that nothing happens.
type goal struct {
	// state is the wanted state of all objects; nil: any.
	state state.State
	// written is the users' content of the edited object, which an operator may have written back.
	written written
	// gone: the edited object must be gone.
	gone bool
	// learns: the operator was just started, or is being learnt about: it must watch
	// something, and what is said if it does not settle is an error of the input.
	learns bool
}

const (
	// look is how often it is looked whether all is settled.
	look = 50 * time.Millisecond
	// busy is how many requests a second are a loop, if they go on: client-go allows 5 by
	// default. With twice as many at rest with the sample, more are one.
	busy = 4
	// mostBusy is how many are a loop even with the sample.
	mostBusy = 20
	// most is how many objects more than with the sample there may be. More say nothing
	// about the operator, and only keep the machine busy.
	most = 300
)

// tooManyError says that an edit cannot be judged.
type tooManyError int

func (n tooManyError) Error() string {
	return fmt.Sprintf("there are %d objects, which is too many to judge the edit on one machine", int(n))
}

// settle waits until all is settled, and returns the state. The problem is nil if that
// came within the limit.
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

// standing returns what is not as it should be though something goes on, which may be only because
// of that: what comes and goes is not.
func (w *world) standing(g goal) *Problem {
	p := w.missing(g, w.state())
	if p == nil || p.Oracle != judge.OtherState {
		return p
	}
	if p.differences = w.session.Standing(p.differences); len(p.differences) == 0 {
		return nil
	}
	p.Lines = lines(p.differences)
	return p
}

// missing returns the first unmet condition of the goal when nothing happens.
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
		return &Problem{Oracle: judge.NotReached, Lines: []string{
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

// unwatched returns the resources that the operator always watches, and does not watch now: it is not up.
func (w *world) unwatched() []string {
	now := w.session.Watched()
	return slices.DeleteFunc(slices.Clone(w.base.watched), func(resource string) bool { return slices.Contains(now, resource) })
}
