// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
)

// TestLastOfBoth checks that lastOfBoth returns the last common kind of write, with the number of
// such writes in both runs.
func TestLastOfBoth(t *testing.T) {
	write := func(verb, name string) observe.Request {
		return observe.Request{Verb: verb, Resource: "claims", Namespace: "shop", Name: name}
	}
	stable := map[string]bool{"claims shop/a": true, "claims shop/b": true}
	for _, tc := range []struct {
		name     string
		one, two []observe.Request
		last     observe.Call
		lasts    int
	}{
		{name: "nothing is written"},
		{name: "nothing in common", one: []observe.Request{write("update", "a")}, two: []observe.Request{write("update", "b")}},
		{
			name: "the last one", one: []observe.Request{write("update", "a"), write("update", "b")}, two: []observe.Request{write("update", "b"), write("update", "a")},
			last: observe.Call{Verb: "update", Resource: "claims", Namespace: "shop", Name: "b"}, lasts: 1,
		},
		{
			name: "as often as in both", one: []observe.Request{write("update", "a"), write("update", "a"), write("update", "a")}, two: []observe.Request{write("update", "a"), write("update", "a")},
			last: observe.Call{Verb: "update", Resource: "claims", Namespace: "shop", Name: "a"}, lasts: 2,
		},
		{
			name: "names that differ", one: []observe.Request{write("create", "x1")}, two: []observe.Request{write("create", "y2")},
			last: observe.Call{Verb: "create", Resource: "claims", Namespace: "shop"}, lasts: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if last, lasts := lastOfBoth(tc.one, tc.two, stable); last != tc.last || lasts != tc.lasts {
				t.Errorf("got %d of %v, want %d of %v", lasts, last, tc.lasts, tc.last)
			}
		})
	}
}

// TestListed checks that lists count as possibly stale only if the operator asks for any version of a
// resource that it watches, and never streams the list.
func TestListed(t *testing.T) {
	list := func(resource, version string) observe.Request {
		return observe.Request{Verb: "list", Resource: resource, ResourceVersion: version, Status: 200}
	}
	b := &Baseline{Watched: []string{"pods", "secrets", "nodes", "claims"}}
	b.findListed(&observe.Record{Requests: []observe.Request{
		list("secrets", "0"), list("secrets", "0"), list("nodes", ""), list("shops", "0"), list("claims", "7"),
		list("pods", "0"), {Verb: "watchlist", Resource: "pods", Status: 200}, {Verb: "watchlist", Resource: "secrets", Status: 422},
	}})
	if want := []string{"secrets"}; !slices.Equal(b.Listed, want) {
		t.Errorf("got %q, want %q", b.Listed, want)
	}
}

// TestAtStart checks that only watches of all starts are expected after a start: those of both runs,
// of a restart at the end of a run, and of the complete workload.
func TestAtStart(t *testing.T) {
	run := func(restarted []string, watches ...string) *observe.Record {
		return &observe.Record{Steps: []observe.StepOutcome{{Watches: watches}}, Restarted: restarted}
	}
	for _, tc := range []struct {
		name   string
		a, b   *observe.Record
		longer *Baseline
		want   []string
	}{
		{"without a restart", run(nil, "pods", "secrets"), run(nil, "pods", "secrets"), nil, []string{"pods", "secrets"}},
		{"only in one run", run(nil, "pods"), run(nil, "pods", "secrets"), nil, []string{"pods"}},
		{"not after a restart", run([]string{"jobs", "pods"}, "pods", "secrets"), run(nil, "pods", "secrets"), nil, []string{"pods"}},
		{"none after a restart", run([]string{}, "pods"), run(nil, "pods"), nil, nil},
		{"not in the complete workload", run(nil, "pods", "secrets"), run(nil, "pods", "secrets"), &Baseline{AtStart: []string{"pods"}}, []string{"pods"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := Learn(tc.a, tc.b, nil, time.Second, nil, tc.longer)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b.AtStart, tc.want) {
				t.Errorf("the watches of a start are %q, want %q", b.AtStart, tc.want)
			}
		})
	}
}

// TestNamesOfAnotherStep checks that an object's name counts as stable only if both runs create the
// object in the same step. Names derived from the time of day may be equal in different steps.
func TestNamesOfAnotherStep(t *testing.T) {
	began := time.Now()
	outcome := func(names ...string) *observe.Record {
		o := &observe.Record{Began: began, Took: time.Duration(len(names)) * time.Second}
		for i, name := range names {
			at := began.Add(time.Duration(i) * time.Second)
			v := objects.Version(t, "revisions", "metadata: {name: "+name+"}")
			v.Time = at
			o.Steps, o.Versions = append(o.Steps, observe.StepOutcome{Began: at}), append(o.Versions, v)
		}
		return o
	}
	b, err := Learn(outcome("first", "tick-2", "tick-3"), outcome("first", "tick-1", "tick-2"), nil, time.Second, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]bool{"revisions /first": true}; !maps.Equal(b.Names.Stable, want) {
		t.Errorf("the names that do not differ are %v, want %v", b.Names.Stable, want)
	}
}

func TestEdits(t *testing.T) {
	before := objects.Version(t, "claims", "metadata: {name: a, labels: {x: y}}\nspec: {size: 1, class: fast}\nstatus: {size: 1}")
	for _, tc := range []struct {
		name, now string
		want      []string
	}{
		{name: "a field", now: "metadata: {name: a}\nspec: {size: 2, class: fast}", want: []string{"spec.size"}},
		{name: "a field that is gone", now: "metadata: {name: a}\nspec: {size: 1}", want: []string{"spec.class"}},
		{name: "status and metadata", now: "metadata: {name: a, labels: {x: z}}\nspec: {size: 1, class: fast}\nstatus: {size: 2}"},
		{name: "a deletion", now: "metadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z}\nspec: {size: 1, class: fast}", want: []string{observe.Whole}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := objects.Version(t, "claims", tc.now)
			now.Type, now.Old = watch.Modified, before.Object
			if edits := now.Edits(); !slices.Equal(edits, tc.want) {
				t.Errorf("got %q, want %q", edits, tc.want)
			}
		})
	}
	if edits := before.Edits(); !slices.Equal(edits, []string{observe.Whole}) {
		t.Errorf("what is new: got %q", edits)
	}
}

// TestAsksOfBoth checks that only requests to applications that both runs send are expected.
func TestAsksOfBoth(t *testing.T) {
	asks := func(path string, times int, outdated ...int) observe.Asks {
		return observe.Asks{Call: observe.Call{Verb: "GET", Resource: "app=shop:80", Name: path}, Times: times, Outdated: outdated}
	}
	got := asksOfBoth([]observe.Asks{asks("/a", 3, 2, 3), asks("/b", 1), asks("/c", 1)}, []observe.Asks{asks("/c", 2), asks("/a", 2, 2)})
	if want := fmt.Sprint([]observe.Asks{asks("/a", 2, 2), asks("/c", 1)}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
