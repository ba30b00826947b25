// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// undisturbedRun is one of one step, after which there is an object that the operator has written.
func undisturbedRun(t *testing.T, resource, object string) *Outcome {
	t.Helper()
	v := version(t, resource, object)
	v.Time = time.Now()
	return &Outcome{
		Took: time.Hour, Steps: []StepOutcome{{Objects: []Version{v}}}, Versions: []Version{v},
		Requests: []Request{{Verb: "create", Resource: "shops", Namespace: "default", Name: "bread", Upstream: 201}},
	}
}

// What the operator wants and comes to by chance is found: if a third run comes to the same as one
// of the first two. What is another each time is not judged, and that is said.
func TestDifferentEnds(t *testing.T) {
	const shop = "metadata: {name: bread, namespace: default}\n"
	for _, tc := range []struct {
		name, resource  string
		one, two, three string
		found, masked   string
	}{
		{name: "the same", resource: "shops", one: "spec: {size: 2}", two: "spec: {size: 2}"},
		{
			name: "one of two", resource: "shops", one: "spec: {size: 2}", two: "spec: {size: 3}", three: "spec: {size: 3}",
			found: "shops default/bread: spec.size is 2 in one undisturbed run, and 3 in another", masked: "shops default/bread spec.size (2 or 3)",
		},
		{
			name: "another each time", resource: "shops", one: "data: {password: a}", two: "data: {password: b}", three: "data: {password: c}",
			masked: "shops default/bread data.password (a or b or c)",
		},
		{name: "in the status", resource: "shops", one: "status: {size: 2}", two: "status: {size: 3}", masked: "shops default/bread status.size (2 or 3)"},
		{name: "of an object of others", resource: "towns", one: "spec: {size: 2}", two: "spec: {size: 3}", masked: "towns default/bread spec.size (2 or 3)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			one, two := undisturbedRun(t, tc.resource, shop+tc.one), undisturbedRun(t, tc.resource, shop+tc.two)
			b, err := learnFrom(one, two, time.Second, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			wants := b.otherWants(one, two)
			if (len(wants) > 0) != (tc.three != "") {
				t.Fatalf("a third run for %v", wants)
			}
			var found []string
			if tc.three != "" {
				problems, err := b.learnMore(undisturbedRun(t, tc.resource, shop+tc.three), wants)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range problems {
					found = append(found, p.Lines...)
				}
			}
			if strings.Join(found, "\n") != tc.found {
				t.Errorf("found %q, want %q", found, tc.found)
			}
			var said bytes.Buffer
			sayMasked(&said, b.masked())
			if want := "Not judged, as it differs between undisturbed runs: " + tc.masked + "\n"; tc.masked != "" && said.String() != want || tc.masked == "" && said.Len() > 0 {
				t.Errorf("said %q, want %q", said.String(), want)
			}
			if lines := diff(b.Steps[0].State, b.names.state(two.Steps[0].Objects, nil), b.Steps[0].Mask); len(lines) > 0 {
				t.Errorf("judged by %q", lines)
			}
		})
	}
}

// What is wrong with any undisturbed run is reported, and what was so before stays.
func TestProblemsOfUndisturbedRuns(t *testing.T) {
	race := Problem{Oracle: Failed, Lines: []string{"WARNING: DATA RACE"}, At: time.Now()}
	broken := Problem{Oracle: Broken, Lines: []string{"two leaders"}}
	one, two := &Outcome{Problems: []Problem{broken}}, &Outcome{Problems: []Problem{race, broken}}
	if o := withProblems([]*Outcome{{}, two}); len(o.Problems) != 2 || o.Problems[0].At.IsZero() {
		t.Errorf("of the second run: %v", o.Problems)
	}
	o := withProblems([]*Outcome{one, two})
	if len(o.Problems) != 2 || !o.Problems[1].At.IsZero() || len(one.Problems) != 1 {
		t.Errorf("of both: %v", o.Problems)
	}
	e := &Explorer{Workload: &Workload{Steps: []Step{{}}}}
	if e.foundUndisturbed(&Outcome{}, nil, nil) != nil {
		t.Error("nothing is wrong, and that is found")
	}
	before := e.foundUndisturbed(&Outcome{Problems: []Problem{broken}}, nil, nil)
	if e.foundUndisturbed(one, nil, []*Finding{before}) != nil {
		t.Error("what was found before is found again")
	}
	if f := e.foundUndisturbed(&Outcome{Problems: []Problem{race}}, nil, []*Finding{before}); f == nil || !slices.ContainsFunc(f.Problems, broken.same) || !slices.ContainsFunc(f.Problems, race.same) {
		t.Errorf("found %v", f)
	}
}

// Only what an operator writes itself is what it wants.
func TestWrote(t *testing.T) {
	request := func(verb, resource, name string) Request {
		return Request{Verb: verb, Resource: resource, Namespace: "default", Name: name, Upstream: 200}
	}
	for key, requests := range map[string]Request{
		"pods default/web-*": request("create", "pods", "web-x"), "pods default/api-*": request("create", "pods", ""), "shops default/a": request("patch", "shops", "a"),
	} {
		if o := (&Outcome{Requests: []Request{requests}}); !o.wrote(key) {
			t.Errorf("%s was written by %v", key, requests)
		}
	}
	for key, requests := range map[string]Request{
		"shops default/a": request("update", "shops/status", "a"), "shops default/b": request("delete", "shops", "b"), "shops default/c": request("update", "shops", "d"),
	} {
		if o := (&Outcome{Requests: []Request{requests}}); o.wrote(key) {
			t.Errorf("%s was not written by %v", key, requests)
		}
	}
}
