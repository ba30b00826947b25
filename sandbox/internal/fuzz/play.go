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

// Kinds of problems (oracles) that fuzz detects in addition to the kinds in package judge.
const (
	// NotUndone means that reverting an edit that users may want does not restore the previous
	// state.
	NotUndone judge.Oracle = "not undone"
	// NotHealed means that reverting an edit that users would only make by mistake does not restore
	// the previous state.
	NotHealed judge.Oracle = "does not heal"
	// OtherThanFresh means that the state after an edit differs from the state after creating a new
	// object with the same content.
	OtherThanFresh judge.Oracle = "other than a new one"
	// Changed means that the API server rejected the edit, at least as a dry run, and yet the
	// object has changed.
	Changed judge.Oracle = "refused, and yet changed"
)

// Problem is an incorrect behavior of the operator, revealed by a trial.
type Problem struct {
	Oracle judge.Oracle `json:"oracle"`
	// When describes the actions that preceded the problem.
	When  string   `json:"when,omitempty"`
	Lines []string `json:"lines"`

	differences []Difference
	// behind is the key of the edited object if the problem is that the operator has not observed
	// the object's current generation. It is empty for other problems.
	behind string
}

// certain reports whether the problem needs no second run for confirmation, such as a panic.
func (p *Problem) certain() bool {
	return p.Oracle == judge.Failed || p.Oracle == judge.Broken || p.Oracle == Changed
}

// because returns the problem with the first rejected write of the operator as an additional first
// line, because this write probably is the cause.
func (p *Problem) because(refused []string) *Problem {
	if len(refused) == 0 || p.certain() || p.Oracle == judge.NotAtRest {
		return p
	}
	with := *p
	with.Lines = slices.Concat([]string{"the API server refuses what the operator writes: " + refused[0]}, p.Lines)
	return &with
}

// summary describes the problem in a line.
func (p *Problem) summary() string { return judge.Summary(p.Oracle, p.Lines) }

// outcome is the API server's response to an edit, or the result of a trial with a fault.
type outcome string

// Outcomes of edits without a fault.
const (
	// accepted means that the API server applied the edit.
	accepted outcome = "accepted"
	// denied means that the API server rejected the edit.
	denied outcome = "refused"
	// same means that the edit does not change the stored object, for example because the API
	// server drops an unknown field.
	same outcome = "no change"
)

// player applies an edit, or several successive edits, and detects problems.
type player struct {
	base     *baseline
	object   *editedObject
	editor   *editor
	restorer *restorer
	act      func(format string, args ...any)
	reach    func(context.Context, goal) (state.State, *Problem, error)
	// busy enables a check that recreates the object, and edits it while the operator still reacts
	// to the creation.
	busy bool
	// begun waits until the operator reacts to fuzz's last action. reactions returns the faults
	// that can be injected into the operator's writes since the start of the trial. broken returns
	// a problem if an invariant was violated, or nil.
	begun     func(context.Context) error
	reactions func() faults.Faults
	broken    func() (*Problem, error)
	// edited is the cluster state after the last edits and before they were reverted. faults lists
	// the faults that can be injected into the operator's writes in response to these edits.
	edited state.State
	faults faults.Faults
}

// play applies edits successively to the sample object in a quiet cluster, reverts them, and checks
// the resulting states. If it returns neither a problem nor an error, the sandbox is unchanged.
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

// when sets the problem's description of the actions that preceded it, and returns the problem.
func (p *Problem) when(text string) *Problem {
	if p != nil {
		p.When = text
	}
	return p
}

// meant reports whether users may make all of the given edits on purpose.
func meant(all []edits.Edit) bool {
	return !slices.ContainsFunc(all, func(e edits.Edit) bool { return !e.Class.Meant() })
}

// fresh creates a new object with the edited content, and compares the resulting cluster state with
// `want`, the state after the edit. Finally, it restores the unedited object.
func (p *player) fresh(ctx context.Context, content map[string]any, want state.State) (*Problem, error) {
	p.act("the object is deleted, and made again as edited")
	problem, err := p.restorer.replace(ctx, content)
	if refused(err) {
		// The API server accepts the edited content only in updates, not in new objects. Recreate
		// the sample instead.
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
			problem = nil // The operator rejects the new object, and reports this in its status.
		} else {
			// Report the new object as expected and the edited object as actual, because an edited
			// object must come to the same state as a new object.
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

// whileBusy recreates the sample object, applies an edit as soon as the operator reacts, and
// reverts the edit immediately. The cluster must reach the same state as without the edit. `meant`
// is set if users may make such an edit on purpose.
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

// reversed formats differences with the expected and the actual values swapped.
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

// reports summarizes the status that the operator has written for an object: its conditions, and
// its phase or state.
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
