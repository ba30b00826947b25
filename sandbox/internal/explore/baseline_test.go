// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// The last write that both undisturbed runs have is the one that a step is over with.
func TestLastOfBoth(t *testing.T) {
	write := func(verb, name string) Request {
		return Request{Verb: verb, Resource: "claims", Namespace: "shop", Name: name}
	}
	stable := map[string]bool{"claims shop/a": true, "claims shop/b": true}
	for _, tc := range []struct {
		name     string
		one, two []Request
		last     Call
		lasts    int
	}{
		{name: "nothing is written"},
		{name: "nothing in common", one: []Request{write("update", "a")}, two: []Request{write("update", "b")}},
		{
			name: "the last one", one: []Request{write("update", "a"), write("update", "b")}, two: []Request{write("update", "b"), write("update", "a")},
			last: Call{Verb: "update", Resource: "claims", Namespace: "shop", Name: "b"}, lasts: 1,
		},
		{
			name: "as often as in both", one: []Request{write("update", "a"), write("update", "a"), write("update", "a")}, two: []Request{write("update", "a"), write("update", "a")},
			last: Call{Verb: "update", Resource: "claims", Namespace: "shop", Name: "a"}, lasts: 2,
		},
		{
			name: "names that differ", one: []Request{write("create", "x1")}, two: []Request{write("create", "y2")},
			last: Call{Verb: "create", Resource: "claims", Namespace: "shop"}, lasts: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if last, lasts := lastOfBoth(tc.one, tc.two, stable); last != tc.last || lasts != tc.lasts {
				t.Errorf("got %d of %v, want %d of %v", lasts, last, tc.lasts, tc.last)
			}
		})
	}
}

// The undisturbed runs are a step apart, so one may name something after the second in which the
// other names something else.
func TestNamesOfAnotherStep(t *testing.T) {
	began := time.Now()
	outcome := func(names ...string) *Outcome {
		o := &Outcome{Began: began, Took: time.Duration(len(names)) * time.Second}
		for i, name := range names {
			at := began.Add(time.Duration(i) * time.Second)
			v := version(t, "revisions", "metadata: {name: "+name+"}")
			v.Time = at
			o.Steps, o.Versions = append(o.Steps, StepOutcome{Began: at}), append(o.Versions, v)
		}
		return o
	}
	b, err := learnFrom(outcome("first", "tick-2", "tick-3"), outcome("first", "tick-1", "tick-2"), time.Second, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]bool{"revisions /first": true}; !maps.Equal(b.names.stable, want) {
		t.Errorf("the names that do not differ are %v, want %v", b.names.stable, want)
	}
}

func TestEdits(t *testing.T) {
	before := version(t, "claims", "metadata: {name: a, labels: {x: y}}\nspec: {size: 1, class: fast}\nstatus: {size: 1}")
	for _, tc := range []struct {
		name, now string
		want      []string
	}{
		{name: "a field", now: "metadata: {name: a}\nspec: {size: 2, class: fast}", want: []string{"spec.size"}},
		{name: "a field that is gone", now: "metadata: {name: a}\nspec: {size: 1}", want: []string{"spec.class"}},
		{name: "status and metadata", now: "metadata: {name: a, labels: {x: z}}\nspec: {size: 1, class: fast}\nstatus: {size: 2}"},
		{name: "a deletion", now: "metadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z}\nspec: {size: 1, class: fast}", want: []string{whole}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := version(t, "claims", tc.now)
			now.Type, now.Old = watch.Modified, before.Object
			if edits := now.edits(); !slices.Equal(edits, tc.want) {
				t.Errorf("got %q, want %q", edits, tc.want)
			}
		})
	}
	if edits := before.edits(); !slices.Equal(edits, []string{whole}) {
		t.Errorf("what is new: got %q", edits)
	}
}

// An operator that misses what users wanted in between is tried first where they changed the
// same field twice.
func TestMissed(t *testing.T) {
	b := &Baseline{Steps: []BaseStep{
		{Edited: map[string]bool{"claims shop/a *": true}},
		{Edited: map[string]bool{"claims shop/a spec.size": true}},
		{Edited: map[string]bool{"claims shop/a spec.size": true}},
		{Edited: map[string]bool{}},
	}}
	again, other, none := b.missed(1, 2, "claims"), b.missed(0, 1, "claims"), b.missed(2, 3, "claims")
	if again <= other || other <= none || none != 0 || b.missed(1, 2, "pods") != 0 {
		t.Errorf("the same field %d, another %d, nothing %d", again, other, none)
	}
}

// Events are not held back beyond the deletion of what users made, if that waits for the
// operator.
func TestLastingFaults(t *testing.T) {
	step := func(dying bool) BaseStep {
		return BaseStep{Events: map[string]int{"claims": 1}, Dying: dying}
	}
	b := &Baseline{Steps: []BaseStep{step(false), step(false), step(true), step(false)}}
	spans := map[[2]int]bool{}
	for _, p := range plan(b) {
		if p.Kind == "DropEvents" {
			spans[[2]int{p.Step, p.Until}] = true
		}
	}
	want := map[[2]int]bool{{0, 0}: true, {0, 1}: true, {0, 2}: true, {1, 1}: true, {1, 2}: true, {2, 2}: true, {3, 3}: true}
	if !maps.Equal(spans, want) {
		t.Errorf("got %v, want %v", spans, want)
	}
}

// Of what is minutes late, that which the operator makes comes first.
func TestLongestFaults(t *testing.T) {
	create := Request{Verb: "create", Resource: "pods"}
	b := &Baseline{Roots: map[string]bool{"sets shop/a": true}, Steps: []BaseStep{
		{Events: map[string]int{"sets": 2}}, {Events: map[string]int{"pods": 9, "sets": 2}, Writes: []Request{create, create}}, {Events: map[string]int{"pods": 3, "sets": 2}},
	}}
	for _, p := range plan(b) {
		if p.Kind == "FreezeLong" {
			if p.Resource != "pods" || p.Step != 1 {
				t.Errorf("the first is %s", p.name())
			}
			return
		}
	}
	t.Error("there is none")
}

// Users who wait for something do not go on while the operator sees nothing.
func TestNothingLastsBeyondAWait(t *testing.T) {
	b := &Baseline{Steps: []BaseStep{{}, {Events: map[string]int{"claims": 1}, Waits: true}, {Events: map[string]int{"claims": 1}}, {Events: map[string]int{"claims": 1}}}}
	for _, p := range plan(b) {
		if p.Kind == "Freeze" && p.Step == 1 && p.Until > 1 {
			t.Errorf("%s", p.name())
		}
	}
}

// Another process can only take over from one that elects a leader, and an object that is new
// is not written by another client before.
func TestFaultsOfWrites(t *testing.T) {
	b := &Baseline{Steps: []BaseStep{{Writes: []Request{{Verb: "create", Resource: "claims"}, {Verb: "patch", Resource: "claims"}}, ReadCalls: []Call{{Verb: "get", Resource: "shops"}, {Verb: "watchlist", Resource: "claims"}}}}}
	planned := func() map[string]bool {
		names := map[string]bool{}
		for _, p := range plan(b) {
			names[p.name()] = true
		}
		return names
	}
	faults := planned()
	for name, want := range map[string]bool{
		"Overtake at step 0, patch claims #1": true, "Overtake at step 0, create claims #1": false, "CutOff at step 0, create claims #1": true,
		"Pause at step 0, patch claims #1": false, "ServerError at step 0, get shops #1": true, "Late at step 0, watchlist claims #1": false,
	} {
		if faults[name] != want {
			t.Errorf("%s: got %t", name, !want)
		}
	}
	b.Elects = true
	if !planned()["Pause at step 0, patch claims #1"] {
		t.Error("a leader that is suspended was not planned")
	}
}
