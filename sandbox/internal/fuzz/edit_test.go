// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// noAct ignores an action.
func noAct(string, ...any) {}

// expect checks that a problem has the given oracle, and that its lines contain `says`. An empty
// oracle means that no problem is expected.
func (p *Problem) expect(t *testing.T, name string, oracle judge.Oracle, says string) {
	t.Helper()
	switch {
	case p == nil && oracle == "":
	case p == nil || p.Oracle != oracle || !strings.Contains(strings.Join(p.Lines, "\n"), says):
		t.Errorf("%s: the problem is %+v, want %q: %s", name, p, oracle, says)
	}
}

func TestEditor(t *testing.T) {
	refuses := func(_ *unstructured.Unstructured, _ bool) error { return errInvalid }
	for _, tc := range []struct {
		name     string
		size     int64
		answer   answer
		underWay bool
		// changes is the size that the object changes to despite the rejection; 0 means no change.
		changes  int64
		failures []string
		want     outcome
		oracle   judge.Oracle
		says     string
	}{
		{name: "it is accepted", size: 2, want: accepted},
		{name: "the object is the same", size: 1, want: same},
		{name: "it is refused", size: 2, answer: refuses, want: denied},
		{name: "it is refused in a sequence", size: 2, answer: refuses, underWay: true, failures: []string{"panic: oh"}, want: denied},
		{
			name: "it is refused, and the operator fails", size: 2, answer: refuses, failures: []string{"panic: oh"},
			want: denied, oracle: judge.Failed, says: "panic: oh",
		},
		{name: "it is refused, and the object changes", size: 2, answer: refuses, changes: 7, want: denied, oracle: Changed, says: "the object is another"},
		{
			name: "it is only refused in a dry run", size: 2, answer: func(_ *unstructured.Unstructured, dryRun bool) error {
				if dryRun {
					return errInvalid
				}
				return nil
			}, want: accepted, oracle: Changed, says: "refused in a dry run, and then accepted",
		},
		{
			name: "it is accepted in a dry run only", size: 2, answer: func(_ *unstructured.Unstructured, dryRun bool) error {
				if dryRun {
					return nil
				}
				return errInvalid
			}, want: denied,
		},
	} {
		object, client := apps(t, tc.answer)
		e := &editor{object: object, act: noAct, failures: func() []string {
			return tc.failures
		}}
		if tc.changes != 0 {
			// The write changes the object although it is rejected.
			refuse := tc.answer
			object, client = apps(t, func(o *unstructured.Unstructured, dryRun bool) error {
				if !dryRun {
					if err := client.Tracker().Update(object.resource, object.object(app(tc.changes)), "default"); err != nil {
						t.Error(err)
					}
				}
				return refuse(o, dryRun)
			})
			e.object = object
		}
		got, problem, err := e.edit(t.Context(), edits.Edit{Field: "spec.size", What: "another"}, app(tc.size), tc.underWay)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
		problem.expect(t, tc.name, tc.oracle, tc.says)
	}
	object, _ := apps(t, func(*unstructured.Unstructured, bool) error { return errors.New("connection refused") })
	if _, _, err := (&editor{object: object, act: noAct}).edit(t.Context(), edits.Edit{Field: "spec.size"}, app(2), false); err == nil {
		t.Error("an edit that is not answered is no error")
	}
}

// stated returns the state of a cluster whose only object is a ConfigMap with the given value.
func stated(value string) state.State {
	return state.State{"configmaps default/a": {{"data.size": value}}}
}

// reaches returns a fake for restorer.reach. It returns the given states in turn, repeating the
// last state, along with the goal's first unmet condition. `goals` collects its arguments.
func reaches(b *baseline, states ...string) (reach func(context.Context, goal) (state.State, *Problem, error), goals *[]goal) {
	goals = &[]goal{}
	return func(_ context.Context, g goal) (state.State, *Problem, error) {
		*goals = append(*goals, g)
		now := stated(states[min(len(*goals), len(states))-1])
		return now, b.unmet(g, &sight{state: now}), nil
	}, goals
}

func TestRestorer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		states []string
		meant  bool
		answer answer
		oracle judge.Oracle
		says   string
		masked int
		// size is the object's expected size at the end.
		size int64
	}{
		{name: "the state is reached", states: []string{"1"}, size: 1},
		{name: "after a mistake it is not reached", states: []string{"2", "3", "2"}, oracle: NotHealed, says: "data.size is 2, not 1", size: 1},
		{name: "after an edit that users want it is not reached", states: []string{"2", "3", "2"}, meant: true, oracle: NotUndone, says: "data.size is 2, not 1", size: 1},
		{name: "it is another each time", states: []string{"2", "3", "4"}, masked: 1, size: 1},
		{
			name: "the sample is refused, and made again", states: []string{"1"}, size: 1,
			answer: func(*unstructured.Unstructured, bool) error { return errInvalid },
		},
	} {
		var said bytes.Buffer
		base := &baseline{state: stated("1"), before: state.State{}, mask: NewMask(nil), progress: &said}
		object, client := apps(t, tc.answer)
		if err := client.Tracker().Update(object.resource, object.object(app(9)), "default"); err != nil {
			t.Fatal(err)
		}
		reach, goals := reaches(base, tc.states...)
		var acts []string
		r := &restorer{base: base, object: object, reach: reach, act: func(format string, _ ...any) { acts = append(acts, format) }}
		problem, err := r.back(t.Context(), app(9), tc.meant)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		problem.expect(t, tc.name, tc.oracle, tc.says)
		if n := len(base.mask.All()); n != tc.masked || (said.Len() > 0) != (tc.masked > 0) {
			t.Errorf("%s: %d fields are masked, want %d; it says %q", tc.name, n, tc.masked, said.String())
		}
		now, err := client.Tracker().Get(object.resource, "default", "a")
		if err != nil || sizeOf(now.(*unstructured.Unstructured)) != tc.size {
			t.Errorf("%s: at the end there is %v, %v", tc.name, now, err)
		}
		if replaced := slices.ContainsFunc(*goals, func(g goal) bool { return g.gone }); replaced != (tc.answer != nil) {
			t.Errorf("%s: replaced: %t, after %q", tc.name, replaced, acts)
		}
	}
}
