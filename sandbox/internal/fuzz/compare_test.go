// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

const (
	web   = "deployments.apps default/web"
	claim = "persistentvolumeclaims default/data"
)

func TestCompare(t *testing.T) {
	fields := func(pairs ...string) []state.Fields {
		f := state.Fields{}
		for i := 0; i < len(pairs); i += 2 {
			f[pairs[i]] = pairs[i+1]
		}
		return []state.Fields{f}
	}
	for _, tc := range []struct {
		name      string
		want, got state.State
		says      []string
	}{
		{"the same", state.State{web: fields("spec.replicas", "3")}, state.State{web: fields("spec.replicas", "3")}, nil},
		{"another value", state.State{web: fields("spec.replicas", "3")}, state.State{web: fields("spec.replicas", "4")}, []string{web + ": spec.replicas is 4, not 3"}},
		{"a field that is missing", state.State{web: fields("spec.replicas", "3")}, state.State{web: fields()}, []string{web + ": spec.replicas is missing, not 3"}},
		{"an object that is missing", state.State{web: fields()}, state.State{}, []string{web + ": it is missing"}},
		{"an object too many", state.State{}, state.State{web: fields()}, []string{web + ": it is there, and should not be"}},
		{"more of them", state.State{web: fields()}, state.State{web: append(fields(), fields()...)}, []string{web + ": there are 2, not 1"}},
		{"what a condition has observed", state.State{web: fields("status.conditions[Ready].observedGeneration", "1")}, state.State{web: fields("status.conditions[Ready].observedGeneration", "3")}, nil},
		{"the number of a rollout", state.State{web: fields("metadata.annotations.deployment.kubernetes.io/revision", "1")}, state.State{web: fields("metadata.annotations.deployment.kubernetes.io/revision", "3")}, nil},
		{"what is masked", state.State{web: fields("status.counter", "1")}, state.State{web: fields("status.counter", "2")}, nil},
		{"what is masked in a list", state.State{web: fields("status.list[b].counter", "1")}, state.State{web: fields("status.list[b].counter", "2")}, nil},
		{"another item of that list", state.State{web: fields("status.list[a].counter", "1")}, state.State{web: fields("status.list[a].counter", "2")}, []string{web + ": status.list[a].counter is 2, not 1"}},
		{"what the user masks", state.State{web: fields("metadata.annotations.a", "1", "metadata.annotationsB", "1")}, state.State{web: fields("metadata.annotations.a", "2", "metadata.annotationsB", "2")}, []string{web + ": metadata.annotationsB is 2, not 1"}},
		{"a resource that the user masks", state.State{}, state.State{"jobs.batch default/old": fields()}, nil},
		{"an object that is masked", state.State{}, state.State{"secrets default/left": fields()}, nil},
		{"a claim that is kept", state.State{}, state.State{claim: fields()}, nil},
		{"a claim that is gone", state.State{claim: fields()}, state.State{}, []string{claim + ": it is missing"}},
		{"a claim that cannot shrink", state.State{claim: fields("spec.resources.requests.storage", "1Gi")}, state.State{claim: fields("spec.resources.requests.storage", "1500Mi")}, nil},
		{"a claim that has not grown", state.State{claim: fields("spec.resources.requests.storage", "2Gi")}, state.State{claim: fields("spec.resources.requests.storage", "1Gi")}, []string{claim + ": spec.resources.requests.storage is 1Gi, not 2Gi"}},
	} {
		m := NewMask([]string{"jobs.batch", "deployments.apps metadata.annotations"})
		m.Learn([]Difference{{Object: web, Path: "status.counter"}, {Object: web, Path: "status.list[b].counter"}, {Object: "secrets default/left"}}, "")
		if got := state.Lines(m.Compare(tc.want, tc.got)); !slices.Equal(got, tc.says) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.says)
		}
	}
}

// TestWrittenBack checks that fields are ignored if they differ only because the operator's types
// write them back in another form. Changed values are reported.
func TestWrittenBack(t *testing.T) {
	const shop = "shops.example.com default/a"
	users := state.Fields{"spec.size": "3", "spec.unknown": "x", "spec.memory": "1024Mi", "spec.timeout": "60s"}
	back := state.Fields{"spec.size": "3", "spec.memory": "1Gi", "spec.timeout": "1m0s", "spec.paused": "false", "spec.resources": "{}"}
	state1 := func(f state.Fields) state.State { return state.State{shop: {f}} }
	with := func(f state.Fields, path, value string) state.State {
		f = maps.Clone(f)
		f[path] = value
		return state1(f)
	}
	by, isNew := written{object: shop, fields: users}, written{object: shop, fields: users, isNew: true}
	for _, tc := range []struct {
		name      string
		want, got state.State
		by        []written
		lines     int
	}{
		{"nothing is known", state1(back), state1(users), nil, 5},
		{"it was written back when it was made", state1(back), state1(users), []written{by}, 0},
		{"it was written back after an edit", state1(users), with(users, "spec.paused", "false"), []written{by}, 0},
		{"a new one was written back", state1(users), state1(back), []written{isNew}, 0},
		{"a value is left behind", state1(back), with(users, "spec.paused", "true"), []written{by}, 1},
		{"a value that was set for users is gone", with(back, "spec.class", "fast"), state1(users), []written{by}, 1},
		{"another value", state1(back), with(users, "spec.size", "4"), []written{by}, 1},
		{"another amount", state1(back), with(users, "spec.memory", "2Gi"), []written{by}, 1},
		{"another object", state.State{web: {back}}, state.State{web: {users}}, []written{by}, 5},
		{"its status", with(back, "status.ready", "true"), with(users, "status.ready", "false"), []written{by}, 1},
	} {
		if lines := state.Lines(NewMask(nil).Compare(tc.want, tc.got, tc.by...)); len(lines) != tc.lines {
			t.Errorf("%s: %q, want %d", tc.name, lines, tc.lines)
		}
	}
}

// TestBecause checks that the operator's rejected write becomes the first line of a problem, unless
// the problem is certain.
func TestBecause(t *testing.T) {
	p := &Problem{Oracle: NotUndone, Lines: []string{claim + ": it is missing"}}
	refused := []string{"create statefulsets.apps default/web: 422"}
	if got := p.because(refused).summary(); got != "not undone: the API server refuses what the operator writes: create statefulsets.apps default/web: 422 (and 1 more)" {
		t.Errorf("the headline is %q", got)
	}
	if p.because(nil) != p || len(p.Lines) != 1 {
		t.Error("nothing is refused, and it says something else")
	}
	panicked := &Problem{Oracle: judge.Failed, Lines: []string{"panic: a"}}
	if panicked.because(refused) != panicked {
		t.Error("what has happened for certain is not the headline")
	}
}

// TestChanging checks that counters, whose values differ after each repetition, are distinguished
// from leftovers of an edit.
func TestChanging(t *testing.T) {
	differences := []Difference{
		{Object: web, Path: "status.restarts", Want: "1", Got: "2"},
		{Object: web, Path: "spec.paused", Want: "", Got: "true"},
		{Object: web, Path: "spec.toggled", Want: "a", Got: "b"},
		{Object: "secrets default/left", Text: "it is there, and should not be"},
	}
	again := state.State{web: {state.Fields{"status.restarts": "3", "spec.paused": "true", "spec.toggled": "a"}}}
	got := changing(differences, again)
	if len(got) != 1 || got[0].Path != "status.restarts" {
		t.Errorf("%v; want only status.restarts", got)
	}
}

// TestExcuse checks that each masked field is printed once, and that the report has the fields that
// were masked during the run.
func TestExcuse(t *testing.T) {
	var said bytes.Buffer
	b := &baseline{mask: NewMask(nil), progress: &said}
	book, err := Tool.Open(t.TempDir(), results.About{})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	f, by := &Fuzzer{base: b}, &results.Scope{}
	if err := f.judge(book, by); err != nil || len(book.Scope.Masked) > 0 {
		t.Errorf("before the run, masked are %v, %v", book.Scope.Masked, err)
	}
	for range 2 {
		b.excuse([]Difference{{Object: web, Path: "spec.replicas", Want: "2", Got: "3"}}, otherInNew)
	}
	if want := "not judged from now on, as it differs in a new sandbox with the sample: " + web + " spec.replicas (2 or 3)\n"; said.String() != want {
		t.Errorf("got %q, want %q", said.String(), want)
	}
	if err := f.judge(book, by); err != nil || len(book.Scope.Masked) != 1 || book.Scope.Masked[0].Path != "spec.replicas" {
		t.Errorf("after the run, masked are %v, %v", book.Scope.Masked, err)
	}
}

func TestLeftOut(t *testing.T) {
	replicaSet := func(replicas int64, owner string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1", "controller": true}}},
			"spec":     map[string]any{"replicas": replicas},
		}}
	}
	for _, tc := range []struct {
		name, resource string
		object         *unstructured.Unstructured
		want           bool
	}{
		{"an old ReplicaSet", "replicasets.apps", replicaSet(0, "Deployment"), true},
		{"the present one", "replicasets.apps", replicaSet(2, "Deployment"), false},
		{"one of another owner", "replicasets.apps", replicaSet(0, "Rollout"), false},
		{"an old revision", "controllerrevisions.apps", replicaSet(1, "StatefulSet"), true},
		{"a Deployment", "deployments.apps", replicaSet(0, "Deployment"), false},
	} {
		if got := leftOut(tc.resource, tc.object); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

// TestStandingProblems checks that differences in objects that keep changing are not reported as
// separate problems.
func TestStandingProblems(t *testing.T) {
	moves, stays := Difference{Object: "things a", Path: "status.beats"}, Difference{Object: "configmaps a", Path: "data.message"}
	still := func(all []Difference) []Difference {
		return slices.DeleteFunc(slices.Clone(all), func(d Difference) bool { return d.Object == moves.Object })
	}
	for _, tc := range []struct {
		name string
		p    *Problem
		want []string
	}{
		{"nothing is missing", nil, nil},
		{"its generation is not observed, and it goes on changing", &Problem{Oracle: judge.NotReached, behind: moves.Object, Lines: []string{"behind"}}, nil},
		{"its generation is not observed, and another object goes on changing", &Problem{Oracle: judge.NotReached, behind: stays.Object, Lines: []string{"behind"}}, []string{"behind"}},
		{"a watch is missing", &Problem{Oracle: judge.NotReached, Lines: []string{"watch"}}, []string{"watch"}},
		{"only what goes on changing differs", &Problem{Oracle: judge.OtherState, differences: []Difference{moves}}, nil},
		{"another object differs", &Problem{Oracle: judge.OtherState, differences: []Difference{moves, stays}}, lines([]Difference{stays})},
	} {
		got := tc.p.standing(still)
		if (got == nil) != (tc.want == nil) || got != nil && !slices.Equal(got.Lines, tc.want) {
			t.Errorf("%s: %+v, want %q", tc.name, got, tc.want)
		}
	}
}
