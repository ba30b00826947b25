// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/words"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Oracles in addition to the oracles of explore.
const (
	// NotUndone: an edit that users may want was reverted, and the state differs from the state
	// before the edit.
	NotUndone judge.Oracle = "not undone"
	// NotHealed: the same after an edit that is a mistake.
	NotHealed judge.Oracle = "does not heal"
	// OtherThanFresh: the state after an edit differs from the state with a new object of the same
	// content.
	OtherThanFresh judge.Oracle = "other than a new one"
	// Changed: the API server rejected an edit, and yet the object changed.
	Changed judge.Oracle = "refused, and yet changed"
)

// Problem is a mistake of the operator that a trial shows.
type Problem struct {
	Oracle judge.Oracle `json:"oracle"`
	// When describes the actions before the problem.
	When  string   `json:"when,omitempty"`
	Lines []string `json:"lines"`

	differences []Difference
	// behind is the key of the object whose present generation the operator has not observed; empty
	// for other problems.
	behind string
}

// certain reports whether a single run proves the problem.
func (p *Problem) certain() bool {
	return p.Oracle == judge.Failed || p.Oracle == judge.Broken || p.Oracle == Changed
}

// because returns the problem with the writes that the API server rejects as its first line, as
// they probably are the cause.
func (p *Problem) because(refused []string) *Problem {
	if len(refused) == 0 || p.certain() || p.Oracle == judge.NotAtRest {
		return p
	}
	with := *p
	with.Lines = slices.Concat([]string{"the API server refuses what the operator writes: " + refused[0]}, p.Lines)
	return &with
}

// summary returns the problem in a line.
func (p *Problem) summary() string {
	text := string(p.Oracle)
	if len(p.Lines) > 0 {
		text += ": " + words.OneLine(p.Lines[0])
	}
	if len(p.Lines) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(p.Lines)-1)
	}
	return text
}

// outcome is the result of edits that have no problem.
type outcome string

// Outcomes of edits.
const (
	// accepted: the object was changed.
	accepted outcome = "accepted"
	// denied: the API server rejected the edit.
	denied outcome = "refused"
	// same: the API server stored the object unchanged.
	same outcome = "no change"
)

// play plays edits in turn on the sample in a quiet cluster, reverts them, and checks the
// states. The sandbox is unchanged if there is no problem and no error.
func (w *world) play(ctx context.Context, all []edits.Edit) (outcome, *Problem, error) {
	w.session.Mark()
	content := w.Sample
	came := same
	for i, e := range all {
		next, ok := e.Apply(content)
		if !ok {
			return denied, nil, nil
		}
		now, problem, err := w.edit(ctx, e, next, i > 0)
		if err != nil || problem != nil {
			return now, problem, err
		}
		if now == denied && i == 0 {
			return now, nil, nil
		}
		if now == accepted {
			content, came = next, accepted
		}
	}
	if came == same {
		return same, nil, nil
	}
	after, problem, err := w.settle(ctx, goal{}, w.limit())
	if err != nil || problem != nil {
		return came, problem.when(w.describe(all)), err
	}
	w.edited, w.faults = after, w.session.Faults()
	edited := w.find()
	problem, err = w.back(ctx, content, meant(all))
	if err != nil || problem != nil {
		return came, problem, err
	}
	if len(all) == 1 && all[0].Class.Meant() && w.base.fresh && reports(edited) == w.base.reports {
		if problem, err = w.fresh(ctx, content, after); err != nil || problem != nil {
			return came, problem, err
		}
	}
	if w.Busy && len(all) == 1 && w.base.fresh {
		if problem, err = w.whileBusy(ctx, content, meant(all)); err != nil || problem != nil {
			return came, problem, err
		}
	}
	broken, err := w.session.Broken()
	if len(broken) > 0 {
		return came, &Problem{Oracle: judge.Broken, Lines: broken}, err
	}
	return came, nil, err
}

// describe returns a description of the edits.
func (w *world) describe(all []edits.Edit) string {
	names := make([]string, 0, len(all))
	for _, e := range all {
		names = append(names, e.String())
	}
	return "after " + strings.Join(names, ", then ")
}

// when returns the problem with a description of the preceding actions.
func (p *Problem) when(text string) *Problem {
	if p != nil {
		p.When = text
	}
	return p
}

// meant reports whether users may want all edits.
func meant(all []edits.Edit) bool {
	for _, e := range all {
		if !e.Class.Meant() {
			return false
		}
	}
	return true
}

// edit makes an edit, after a dry run. underWay is set if earlier edits of a sequence precede
// it: then a rejected edit is not examined further.
func (w *world) edit(ctx context.Context, e edits.Edit, content map[string]any, underWay bool) (outcome, *Problem, error) {
	was, would, err := w.put(ctx, content, true)
	switch {
	case refused(err):
		if underWay {
			return denied, nil, nil
		}
		return w.refuses(ctx, e, content, was)
	case err != nil:
		return "", nil, fmt.Errorf("try %s: %w", e, err)
	case sameContent(was, would):
		return same, nil, nil
	}
	w.session.Act(results.Edit+"%s", e)
	if _, _, err := w.put(ctx, content, false); refused(err) {
		return denied, nil, nil
	} else if err != nil {
		return "", nil, fmt.Errorf("%s: %w", e, err)
	}
	return accepted, nil, nil
}

// refuses makes an edit that was rejected in a dry run, and checks that the object does not
// change.
func (w *world) refuses(ctx context.Context, e edits.Edit, content map[string]any, was *unstructured.Unstructured) (outcome, *Problem, error) {
	_, _, err := w.put(ctx, content, false)
	switch {
	case err == nil:
		return accepted, &Problem{Oracle: Changed, Lines: []string{"it was refused in a dry run, and then accepted"}}, nil
	case !refused(err):
		return "", nil, fmt.Errorf("%s: %w", e, err)
	}
	now, err := w.client().Get(ctx, was.GetName(), metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	if !sameContent(was, now) || was.GetGeneration() != now.GetGeneration() {
		return denied, &Problem{Oracle: Changed, Lines: []string{"it was refused, and the object is another: " + words.OneLine(e.String())}}, nil
	}
	if lines := w.session.Failures(); len(lines) > 0 {
		return denied, &Problem{Oracle: judge.Failed, Lines: lines}, nil
	}
	return denied, nil, nil
}

// back restores the sample, and returns a problem if its state is not reached.
func (w *world) back(ctx context.Context, content map[string]any, meant bool) (*Problem, error) {
	state, problem, err := w.restore(ctx)
	if err != nil || problem == nil || problem.Oracle != judge.OtherState {
		return problem.when("after the sample was restored"), err
	}
	// A value that changes with each repetition, such as a counter, is not a leftover of the edit.
	if slices.ContainsFunc(problem.differences, func(d Difference) bool { return d.Path != "" }) {
		if repeated, err := w.again(ctx, content); err == nil && repeated != nil {
			w.excuse(changing(problem.differences, repeated), anotherEachTime)
		}
	}
	differences := w.base.mask.Compare(w.base.state, state, w.written(w.Sample, false))
	if len(differences) == 0 {
		return nil, nil
	}
	oracle := NotHealed
	if meant {
		oracle = NotUndone
	}
	return &Problem{Oracle: oracle, When: "after the sample was restored", Lines: lines(differences), differences: differences}, nil
}

// restore reverts the object to the sample. If the API server rejects that, as for immutable
// fields, the object is deleted and created again.
func (w *world) restore(ctx context.Context) (state.State, *Problem, error) {
	w.session.Act("the sample is restored")
	_, _, err := w.put(ctx, w.Sample, false)
	if refused(err) {
		w.session.Act("that is refused, so the object is made again")
		if problem, err := w.replace(ctx, w.Sample); err != nil || problem != nil {
			return nil, problem, err
		}
	} else if err != nil {
		return nil, nil, fmt.Errorf("restore the sample: %w", err)
	}
	return w.settle(ctx, goal{state: w.base.state, written: w.written(w.Sample, false)}, w.limit())
}

// again makes an edit a second time and reverts it, and returns the resulting state.
func (w *world) again(ctx context.Context, content map[string]any) (state.State, error) {
	w.session.Act("the same again")
	if _, _, err := w.put(ctx, content, false); err != nil {
		return nil, err
	}
	if _, problem, err := w.settle(ctx, goal{}, w.limit()); err != nil || problem != nil {
		return nil, err
	}
	w.session.Act("the sample is restored")
	if _, _, err := w.put(ctx, w.Sample, false); err != nil {
		return nil, err
	}
	state, _, err := w.settle(ctx, goal{}, w.limit())
	return state, err
}

// replace deletes the object and creates another with that content.
func (w *world) replace(ctx context.Context, content map[string]any) (*Problem, error) {
	if err := w.remove(ctx); err != nil {
		return nil, err
	}
	_, problem, err := w.settle(ctx, goal{gone: true, state: w.base.before}, w.limit())
	if err != nil || problem != nil && problem.Oracle != judge.OtherState {
		return problem.when("after the object was deleted"), err
	}
	return nil, w.create(ctx, content)
}

// fresh creates a new object with the edited content, and compares its state with the state
// after the edit. Then it restores the sample.
func (w *world) fresh(ctx context.Context, content map[string]any, want state.State) (*Problem, error) {
	w.session.Act("the object is deleted, and made again as edited")
	problem, err := w.replace(ctx, content)
	if refused(err) {
		// The content is only allowed in an update.
		if err := w.create(ctx, w.Sample); err != nil {
			return nil, err
		}
		_, problem, err := w.settle(ctx, goal{state: w.base.state}, w.limit())
		return problem.when("after the sample was made again"), err
	}
	if err != nil || problem != nil {
		return problem, err
	}
	_, problem, err = w.settle(ctx, goal{state: want, written: w.written(content, true)}, w.limit())
	if problem != nil && problem.Oracle == judge.OtherState {
		if fresh := w.find(); fresh != nil && reports(fresh) != w.base.reports {
			problem = nil // The operator rejects the new object, and reports that.
		} else {
			// The edited object is the wrong side of the comparison.
			problem.Oracle, problem.Lines = OtherThanFresh, reversed(problem.differences)
		}
	}
	if err != nil || problem != nil {
		return problem.when("a new object with the edit, compared with the edited one"), err
	}
	_, problem, err = w.restore(ctx)
	if problem != nil && problem.Oracle == judge.OtherState {
		problem.Oracle = NotUndone
	}
	return problem.when("after a new object with the edit became the sample"), err
}

// reversed describes differences with both sides swapped.
func reversed(differences []Difference) []string {
	all := make([]string, 0, len(differences))
	for _, d := range differences {
		if d.Path != "" {
			d.Want, d.Got, d.Text = d.Got, d.Want, ""
			all = append(all, "edited, "+d.String())
		} else {
			all = append(all, "a new one, "+d.String())
		}
	}
	return all
}

// reports returns the report of the operator in the status of an object: the conditions, and
// the phase or state.
func reports(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	said := map[string]any{"phase": status["phase"], "state": status["state"]}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, is := c.(map[string]any); is {
			said["condition "+textOf(condition, "type")] = condition["status"]
		}
	}
	maps.DeleteFunc(said, func(_ string, value any) bool { return value == nil })
	return fmt.Sprint(said)
}
