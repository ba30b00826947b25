// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"maps"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// TestEachFaultIsPlanned checks that each fault in Table is planned for an operator that elects a
// leader, writes, and lists from a cache, and that none is planned for an operator that does
// nothing.
func TestEachFaultIsPlanned(t *testing.T) {
	b := &baseline.Baseline{
		Elects: true, Listed: []string{"claims"}, Watched: []string{"claims"},
		Steps: []baseline.BaseStep{
			{}, {Events: map[string]int{"claims": 2}, Writes: []observe.Request{{Verb: "update", Resource: "claims"}}}, {Events: map[string]int{"claims": 1}},
			{Asks: []observe.Asks{{Call: observe.Call{Verb: "GET", Resource: "app=shop:80"}, Times: 1, Outdated: []int{1}}}},
		},
		Programs: map[string]bool{"app=shop:80": true},
	}
	planned := map[Kind]Fault{}
	for _, f := range PlanAll(b) {
		planned[f.Kind] = f.Fault
	}
	for _, e := range Table {
		f, is := planned[e.Kind]
		if !is {
			t.Errorf("%s is never planned", e.Kind)
			continue
		}
		if (f.Call != nil) != (e.Hits == Write || e.Hits == Ask) || (f.Resource != "") != (e.Hits == Event || e.Hits == Events) && f.AsOf == "" {
			t.Errorf("%s hits a %s, and is planned as %s", e.Kind, e.Hits, f.Name())
		}
		if f.Describe(&workload.Workload{}) == "" || f.Possible() != e.Possible || f.Subject() == "" && e.Hits != Start {
			t.Errorf("%s cannot be described: %+v", e.Kind, f)
		}
	}
	for _, f := range PlanAll(&baseline.Baseline{Steps: []baseline.BaseStep{{}}}) {
		t.Errorf("%s is planned for an operator that does nothing", f.Name())
	}
}

func TestMissed(t *testing.T) {
	b := &baseline.Baseline{Steps: []baseline.BaseStep{
		{Edited: map[string]bool{"claims shop/a *": true}},
		{Edited: map[string]bool{"claims shop/a spec.size": true}},
		{Edited: map[string]bool{"claims shop/a spec.size": true}},
		{Edited: map[string]bool{}},
	}}
	again, other, none := b.Missed(1, 2, "claims"), b.Missed(0, 1, "claims"), b.Missed(2, 3, "claims")
	if again <= other || other <= none || none != 0 || b.Missed(1, 2, "pods") != 0 {
		t.Errorf("the same field %d, another %d, nothing %d", again, other, none)
	}
}

// TestLastingFaults checks that events are held back no longer than until a step in which the
// deletion of a user's object waits for the operator.
func TestLastingFaults(t *testing.T) {
	step := func(dying bool) baseline.BaseStep {
		return baseline.BaseStep{Events: map[string]int{"claims": 1}, Dying: dying}
	}
	b := &baseline.Baseline{Steps: []baseline.BaseStep{step(false), step(false), step(true), step(false)}}
	spans := map[[2]int]bool{}
	for _, p := range PlanAll(b) {
		if p.Kind == "DropEvents" {
			spans[[2]int{p.Step, p.Until}] = true
		}
	}
	want := map[[2]int]bool{{0, 0}: true, {0, 1}: true, {0, 2}: true, {1, 1}: true, {1, 2}: true, {2, 2}: true, {3, 3}: true}
	if !maps.Equal(spans, want) {
		t.Errorf("got %v, want %v", spans, want)
	}
}

// TestLongestFaults checks that the first fault that holds back events for minutes hits a resource
// that the operator creates.
func TestLongestFaults(t *testing.T) {
	create := observe.Request{Verb: "create", Resource: "pods"}
	b := &baseline.Baseline{Roots: map[string]bool{"sets shop/a": true}, Steps: []baseline.BaseStep{
		{Events: map[string]int{"sets": 2}}, {Events: map[string]int{"pods": 9, "sets": 2}, Writes: []observe.Request{create, create}}, {Events: map[string]int{"pods": 3, "sets": 2}},
	}}
	for _, p := range PlanAll(b) {
		if p.Kind == "FreezeLong" {
			if p.Resource != "pods" || p.Step != 1 {
				t.Errorf("the first is %s", p.Name())
			}
			return
		}
	}
	t.Error("there is none")
}

// TestNothingLastsBeyondAWait checks that events are held back no longer than until a step in which
// users wait for the operator.
func TestNothingLastsBeyondAWait(t *testing.T) {
	b := &baseline.Baseline{Steps: []baseline.BaseStep{{}, {Events: map[string]int{"claims": 1}, Waits: true}, {Events: map[string]int{"claims": 1}}, {Events: map[string]int{"claims": 1}}}}
	for _, p := range PlanAll(b) {
		if p.Kind == "Freeze" && p.Step == 1 && p.Until > 1 {
			t.Errorf("%s", p.Name())
		}
	}
}

// TestFaultsOfWrites checks that faults with a second process are planned only for operators that
// elect a leader, and that no other client changes an object while the operator creates it.
func TestFaultsOfWrites(t *testing.T) {
	b := &baseline.Baseline{Steps: []baseline.BaseStep{{Writes: []observe.Request{{Verb: "create", Resource: "claims"}, {Verb: "patch", Resource: "claims"}}, ReadCalls: []observe.Call{{Verb: "get", Resource: "shops"}, {Verb: "watchlist", Resource: "claims"}}}}}
	planned := func() map[string]bool {
		names := map[string]bool{}
		for _, p := range PlanAll(b) {
			names[p.Name()] = true
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

// TestFaultsOfApplications checks which faults are planned for requests to applications.
func TestFaultsOfApplications(t *testing.T) {
	asks := func(verb, application string, times int, outdated ...int) observe.Asks {
		return observe.Asks{Call: observe.Call{Verb: verb, Resource: application, Name: "/price"}, Times: times, Outdated: outdated}
	}
	b := &baseline.Baseline{
		Programs: map[string]bool{"app=shop:80": true},
		Steps:    []baseline.BaseStep{{}, {Asks: []observe.Asks{asks("GET", "app=shop:80", 2, 2), asks("POST", "app=table:80", 1)}}, {Asks: []observe.Asks{asks("GET", "app=shop:80", 1)}}},
	}
	scores := map[string]int{}
	for _, p := range PlanAll(b) {
		scores[p.Name()] = p.Score
	}
	for name, want := range map[string]bool{
		"LoseAnswer at step 1, GET app=shop:80 /price #1": true, "LoseAnswer at step 1, GET app=shop:80 /price #2": true, "LoseAnswer at step 1, GET app=shop:80 /price #3": false,
		"NoAnswer at step 1, POST app=table:80 /price #1": true, "Conflict at step 1, POST app=table:80 /price #1": false,
		"OldAnswer at step 1, GET app=shop:80 /price #1": false, "OldAnswer at step 1, GET app=shop:80 /price #2": true,
		"LoseState at step 1, GET app=shop:80 /price #1": true, "LoseState at step 1, POST app=table:80 /price #1": false,
	} {
		if _, planned := scores[name]; planned != want {
			t.Errorf("%s: got %t", name, planned)
		}
	}
	first := scores["LoseAnswer at step 1, GET app=shop:80 /price #1"]
	for _, later := range []string{"LoseAnswer at step 1, GET app=shop:80 /price #2", "LoseAnswer at step 2, GET app=shop:80 /price #1"} {
		if scores[later] >= first {
			t.Errorf("%s has the score %d, and the first request %d", later, scores[later], first)
		}
	}
}
