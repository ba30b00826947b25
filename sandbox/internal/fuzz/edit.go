// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// editor applies edits, and checks that a rejected edit changes nothing.
type editor struct {
	object *editedObject
	// act records an action of fuzz in the trial's timeline. failures returns a line for each
	// failure of the operator, such as a panic.
	act      func(format string, args ...any)
	failures func() []string
}

// edit sends an edit to the API server, first as a dry run. `underWay` is set if previous edits of
// a sequence have already been applied. In this case, edit does not check that a rejected edit
// changes nothing.
func (e *editor) edit(ctx context.Context, edit edits.Edit, content map[string]any, underWay bool) (outcome, *Problem, error) {
	was, would, err := e.object.put(ctx, content, true)
	switch {
	case refused(err):
		if underWay {
			return denied, nil, nil
		}
		return e.refuses(ctx, edit, content, was)
	case err != nil:
		return "", nil, fmt.Errorf("try %s: %w", edit, err)
	case sameContent(was, would):
		return same, nil, nil
	}
	e.act(results.Edit+"%s", edit)
	if _, _, err := e.object.put(ctx, content, false); refused(err) {
		return denied, nil, nil
	} else if err != nil {
		return "", nil, fmt.Errorf("%s: %w", edit, err)
	}
	return accepted, nil, nil
}

// refuses sends an edit that was rejected in a dry run. It checks that the edit is rejected again
// and does not change the object.
func (e *editor) refuses(ctx context.Context, edit edits.Edit, content map[string]any, was *unstructured.Unstructured) (outcome, *Problem, error) {
	_, _, err := e.object.put(ctx, content, false)
	switch {
	case err == nil:
		return accepted, &Problem{Oracle: Changed, Lines: []string{"it was refused in a dry run, and then accepted"}}, nil
	case !refused(err):
		return "", nil, fmt.Errorf("%s: %w", edit, err)
	}
	now, err := e.object.client().Get(ctx, was.GetName(), metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	if !sameContent(was, now) || was.GetGeneration() != now.GetGeneration() {
		return denied, &Problem{Oracle: Changed, Lines: []string{"it was refused, and the object is another: " + words.OneLine(edit.String())}}, nil
	}
	if lines := e.failures(); len(lines) > 0 {
		return denied, &Problem{Oracle: judge.Failed, Lines: lines}, nil
	}
	return denied, nil, nil
}

// restorer reverts edits, and checks that the cluster returns to its state before the edits.
type restorer struct {
	base   *baseline
	object *editedObject
	act    func(format string, args ...any)
	// reach waits until nothing in the cluster changes and the cluster is in the desired state (the
	// goal). It returns the actual state.
	reach func(context.Context, goal) (state.State, *Problem, error)
}

// back reverts an edit by restoring the sample (the unedited custom resource), and returns a
// problem if the cluster does not return to its state before the edit. `content` is the edited
// object. `meant` is set if users may make the edit on purpose.
func (r *restorer) back(ctx context.Context, content map[string]any, meant bool) (*Problem, error) {
	state, problem, err := r.restore(ctx)
	if err != nil || problem == nil || problem.Oracle != judge.OtherState {
		return problem.when("after the sample was restored"), err
	}
	// Do not report a value that changes with each repetition of the edit, such as a counter, as a
	// leftover of the edit.
	if slices.ContainsFunc(problem.differences, func(d Difference) bool { return d.Path != "" }) {
		if repeated, err := r.again(ctx, content); err == nil && repeated != nil {
			r.base.excuse(changing(problem.differences, repeated), anotherEachTime)
		}
	}
	differences := r.base.mask.Compare(r.base.state, state, r.object.written(r.object.sample, false))
	if len(differences) == 0 {
		return nil, nil
	}
	oracle := NotHealed
	if meant {
		oracle = NotUndone
	}
	return &Problem{Oracle: oracle, When: "after the sample was restored", Lines: lines(differences), differences: differences}, nil
}

// restore reverts the edited object to the sample (the unedited custom resource). If the API server
// rejects this update, for example because a field is immutable, restore deletes and recreates the
// object.
func (r *restorer) restore(ctx context.Context) (state.State, *Problem, error) {
	r.act("the sample is restored")
	_, _, err := r.object.put(ctx, r.object.sample, false)
	if refused(err) {
		r.act("that is refused, so the object is made again")
		if problem, err := r.replace(ctx, r.object.sample); err != nil || problem != nil {
			return nil, problem, err
		}
	} else if err != nil {
		return nil, nil, fmt.Errorf("restore the sample: %w", err)
	}
	return r.reach(ctx, goal{state: r.base.state, written: r.object.written(r.object.sample, false)})
}

// again makes and reverts the edit with the given content once more, and returns the resulting
// cluster state.
func (r *restorer) again(ctx context.Context, content map[string]any) (state.State, error) {
	r.act("the same again")
	if _, _, err := r.object.put(ctx, content, false); err != nil {
		return nil, err
	}
	if _, problem, err := r.reach(ctx, goal{}); err != nil || problem != nil {
		return nil, err
	}
	r.act("the sample is restored")
	if _, _, err := r.object.put(ctx, r.object.sample, false); err != nil {
		return nil, err
	}
	state, _, err := r.reach(ctx, goal{})
	return state, err
}

// replace deletes the edited object and recreates it with the given content.
func (r *restorer) replace(ctx context.Context, content map[string]any) (*Problem, error) {
	if err := r.object.remove(ctx); err != nil {
		return nil, err
	}
	_, problem, err := r.reach(ctx, goal{gone: true, state: r.base.before})
	if err != nil || problem != nil && problem.Oracle != judge.OtherState {
		return problem.when("after the object was deleted"), err
	}
	return nil, r.object.create(ctx, content)
}
