// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
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
func (p *Problem) summary() string { return judge.Summary(p.Oracle, p.Lines) }

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

// player plays edits that users make one after another, and finds problems.
type player struct {
	base     *baseline
	object   *editedObject
	editor   *editor
	restorer *restorer
	act      func(format string, args ...any)
	reach    func(context.Context, goal) (state.State, *Problem, error)
	// busy makes the player edit new objects, too.
	busy bool
	// begun waits until the operator reacts. Reactions returns the faults that can be injected into
	// the writes of the reaction, and broken the problem of the built-in invariants.
	begun     func(context.Context) error
	reactions func() faults.Faults
	broken    func() (*Problem, error)
	// edited is the state after the edits that were played last, and faults are the faults that can
	// be injected into the writes of the operator in response to these edits.
	edited state.State
	faults faults.Faults
}

// play plays edits in turn on the sample in a quiet cluster, reverts them, and checks the
// states. The sandbox is unchanged if there is no problem and no error.
func (p *player) play(ctx context.Context, all []edits.Edit) (outcome, *Problem, error) {
	content := p.object.sample
	came := same
	for i, e := range all {
		next, ok := e.Apply(content)
		if !ok {
			return denied, nil, nil
		}
		now, problem, err := p.editor.edit(ctx, e, next, i > 0)
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
	after, problem, err := p.reach(ctx, goal{})
	if err != nil || problem != nil {
		return came, problem.when("after " + join(all, ", then ")), err
	}
	p.edited, p.faults = after, p.reactions()
	edited := p.object.find()
	problem, err = p.restorer.back(ctx, content, meant(all))
	if err != nil || problem != nil {
		return came, problem, err
	}
	if len(all) == 1 && all[0].Class.Meant() && p.base.fresh && reports(edited) == p.base.reports {
		if problem, err = p.fresh(ctx, content, after); err != nil || problem != nil {
			return came, problem, err
		}
	}
	if p.busy && len(all) == 1 && p.base.fresh {
		if problem, err = p.whileBusy(ctx, content, meant(all)); err != nil || problem != nil {
			return came, problem, err
		}
	}
	problem, err = p.broken()
	return came, problem, err
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
	return !slices.ContainsFunc(all, func(e edits.Edit) bool { return !e.Class.Meant() })
}

// fresh creates a new object with the edited content, and compares its state with the state
// after the edit. Then it restores the sample.
func (p *player) fresh(ctx context.Context, content map[string]any, want state.State) (*Problem, error) {
	p.act("the object is deleted, and made again as edited")
	problem, err := p.restorer.replace(ctx, content)
	if refused(err) {
		// The content is only allowed in an update.
		if err := p.object.create(ctx, p.object.sample); err != nil {
			return nil, err
		}
		_, problem, err := p.reach(ctx, goal{state: p.base.state})
		return problem.when("after the sample was made again"), err
	}
	if err != nil || problem != nil {
		return problem, err
	}
	_, problem, err = p.reach(ctx, goal{state: want, written: p.object.written(content, true)})
	if problem != nil && problem.Oracle == judge.OtherState {
		if fresh := p.object.find(); fresh != nil && reports(fresh) != p.base.reports {
			problem = nil // The operator rejects the new object, and reports that.
		} else {
			// The edited object is the wrong side of the comparison.
			problem.Oracle, problem.Lines = OtherThanFresh, reversed(problem.differences)
		}
	}
	if err != nil || problem != nil {
		return problem.when("a new object with the edit, compared with the edited one"), err
	}
	_, problem, err = p.restorer.restore(ctx)
	if problem != nil && problem.Oracle == judge.OtherState {
		problem.Oracle = NotUndone
	}
	return problem.when("after a new object with the edit became the sample"), err
}

// whileBusy creates the sample again, makes an edit as soon as the operator has begun to react,
// and reverts the edit at once. The operator must reach the state of the sample. meant is set
// if users may want the edit.
func (p *player) whileBusy(ctx context.Context, content map[string]any, meant bool) (*Problem, error) {
	p.act("the object is deleted, and the sample made again")
	if problem, err := p.restorer.replace(ctx, p.object.sample); err != nil || problem != nil {
		return problem, err
	}
	if err := p.begun(ctx); err != nil {
		return nil, err
	}
	p.act("at once, the edit is made")
	if _, _, err := p.object.put(ctx, content, false); err != nil && !refused(err) {
		return nil, fmt.Errorf("edit a new object: %w", err)
	}
	_, problem, err := p.restorer.restore(ctx)
	if problem != nil && problem.Oracle == judge.OtherState {
		if problem.Oracle = NotHealed; meant {
			problem.Oracle = NotUndone
		}
	}
	return problem.when("after a new object was edited and the sample restored, both at once"), err
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
