// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// size returns an edit of spec.size.
func size(n int64, class edits.Class) edits.Edit {
	return edits.Edit{Field: "spec.size", What: "another", Path: edits.Path{"spec", "size"}, Value: n, Class: class}
}

func TestPlayer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		edits  []edits.Edit
		answer answer
		states []string
		fresh  bool
		busy   bool
		// shown is the status of the new object with the edited content.
		shown  any
		broken *Problem
		want   outcome
		oracle judge.Oracle
		says   string
	}{
		{name: "all is well", edits: []edits.Edit{size(2, edits.Plausible)}, states: []string{"2", "1"}, want: accepted},
		{name: "it changes nothing", edits: []edits.Edit{size(1, edits.Plausible)}, states: []string{"1"}, want: same},
		{
			name: "it is refused", edits: []edits.Edit{size(2, edits.Plausible)}, states: []string{"1"}, want: denied,
			answer: func(*unstructured.Unstructured, bool) error { return errInvalid },
		},
		{
			name: "a sequence goes on after a refused edit", edits: []edits.Edit{size(2, edits.Plausible), size(3, edits.Beyond)}, states: []string{"2", "1"}, want: accepted,
			answer: func(o *unstructured.Unstructured, _ bool) error {
				if sizeOf(o) == 3 {
					return errInvalid
				}
				return nil
			},
		},
		{name: "it is not undone", edits: []edits.Edit{size(2, edits.Plausible)}, states: []string{"2", "2", "2", "2"}, want: accepted, oracle: NotUndone, says: "data.size is 2, not 1"},
		{name: "it does not heal", edits: []edits.Edit{size(-2, edits.Beyond)}, states: []string{"2"}, want: accepted, oracle: NotHealed, says: "data.size is 2, not 1"},
		{
			name: "a new object is the same", edits: []edits.Edit{size(2, edits.Plausible)}, fresh: true,
			states: []string{"2", "1", "0", "2", "1"}, want: accepted,
		},
		{
			name: "a new object is another", edits: []edits.Edit{size(2, edits.Plausible)}, fresh: true,
			states: []string{"2", "1", "0", "3", "1"}, want: accepted, oracle: OtherThanFresh, says: "edited, configmaps default/a: data.size is 2, not 3",
		},
		{
			name: "the operator refuses a new object", edits: []edits.Edit{size(2, edits.Plausible)}, fresh: true, shown: map[string]any{"phase": "Refused"},
			states: []string{"2", "1", "0", "3", "1"}, want: accepted,
		},
		{
			name: "a new object does not become the sample", edits: []edits.Edit{size(2, edits.Plausible)}, fresh: true,
			states: []string{"2", "1", "0", "2", "2"}, want: accepted, oracle: NotUndone, says: "data.size is 2, not 1",
		},
		{
			name: "an edit of a new object is not undone", edits: []edits.Edit{size(-2, edits.Beyond)}, fresh: true, busy: true,
			states: []string{"2", "1", "0", "2"}, want: accepted, oracle: NotHealed, says: "data.size is 2, not 1",
		},
		{
			name: "an invariant is broken", edits: []edits.Edit{size(2, edits.Plausible)}, states: []string{"2", "1"},
			broken: &Problem{Oracle: judge.Broken, Lines: []string{"too many pods"}}, want: accepted, oracle: judge.Broken, says: "too many pods",
		},
	} {
		base := &baseline{state: stated("1"), before: stated("0"), mask: NewMask(nil), fresh: tc.fresh, reports: reports(&unstructured.Unstructured{Object: app(1)}), progress: io.Discard}
		object, _ := apps(t, tc.answer)
		object.show(app(1))
		reach, goals := reaches(base, tc.states...)
		p := &player{
			base: base, object: object, act: noAct, busy: tc.busy,
			begun: func(context.Context) error { return nil }, broken: func() (*Problem, error) { return tc.broken, nil },
			reactions: func() faults.Faults { return faults.Faults{{Score: 7}} },
			editor:    &editor{object: object, act: noAct, failures: func() []string { return nil }},
		}
		p.reach = func(ctx context.Context, g goal) (state.State, *Problem, error) {
			if g.gone && tc.shown != nil {
				made := app(2)
				made["status"] = tc.shown
				object.show(made)
			}
			return reach(ctx, g)
		}
		p.restorer = &restorer{base: base, object: object, act: noAct, reach: p.reach}
		came, problem, err := p.play(t.Context(), tc.edits)
		if err != nil || came != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, came, err, tc.want)
		}
		problem.expect(t, tc.name, tc.oracle, tc.says)
		if tc.want == accepted && (len(p.faults) != 1 || p.edited["configmaps default/a"][0]["data.size"] != "2") {
			t.Errorf("%s: after the edit there are %v, and %d faults", tc.name, p.edited, len(p.faults))
		}
		if tc.oracle == "" && tc.want == accepted && len(*goals) != len(tc.states) {
			t.Errorf("%s: it was waited %d times, want %d", tc.name, len(*goals), len(tc.states))
		}
	}
}

// TestJudged checks that a problem counts only if the fault was reached, or if it is certain.
func TestJudged(t *testing.T) {
	differs, panics := &Problem{Oracle: judge.OtherState, Lines: []string{"oh"}}, &Problem{Oracle: judge.Failed, Lines: []string{"panic: oh"}}
	for _, tc := range []struct {
		name    string
		reached bool
		problem *Problem
		came    outcome
		found   *Problem
		says    string
	}{
		{name: "reached", reached: true, came: disturbed},
		{name: "reached, with a problem", reached: true, problem: differs, came: disturbed, found: differs},
		{name: "not reached", came: notReached},
		{name: "not reached, with a problem", problem: differs, came: notReached, says: "the fault was not reached, and yet other state: oh"},
		{name: "not reached, with a panic", problem: panics, came: notReached, found: panics},
	} {
		came, found, err := judged(tc.reached, tc.problem)
		if came != tc.came || found != tc.found || (err != nil) != (tc.says != "") || err != nil && err.Error() != tc.says {
			t.Errorf("%s: %s, %v, %v", tc.name, came, found, err)
		}
	}
}
