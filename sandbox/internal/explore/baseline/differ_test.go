// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// undisturbedRun returns the record of a one-step run at whose end the given object exists, written
// by the operator. If `object` is empty, no object exists.
func undisturbedRun(t *testing.T, resource, object string) *observe.Record {
	t.Helper()
	if object == "" {
		return &observe.Record{Took: time.Hour, Steps: make([]observe.StepOutcome, 1)}
	}
	v := objects.Version(t, resource, object)
	v.Time = time.Now()
	return &observe.Record{
		Took: time.Hour, Steps: []observe.StepOutcome{{Objects: []observe.Version{v}}}, Versions: []observe.Version{v},
		Requests: []observe.Request{{Verb: "create", Resource: "shops", Namespace: "default", Name: "bread", Upstream: 201}},
	}
}

// TestDifferentEnds checks that a desired-state field is a problem if a third run repeats one of
// its two different values. A field with three different values is masked, and reported as masked.
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
			b, err := Learn(one, two, nil, time.Second, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			wants := b.OtherWants(one, two)
			if (len(wants) > 0) != (tc.three != "") {
				t.Fatalf("a third run for %v", wants)
			}
			var found []string
			if tc.three != "" {
				problems, err := b.LearnMore(undisturbedRun(t, tc.resource, shop+tc.three), wants)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range problems {
					found = append(found, p...)
				}
			}
			if strings.Join(found, "\n") != tc.found {
				t.Errorf("found %q, want %q", found, tc.found)
			}
			var said bytes.Buffer
			SayMasked(&said, b.Masked())
			if want := "Not judged, as it differs between undisturbed runs: " + tc.masked + "\n"; tc.masked != "" && said.String() != want || tc.masked == "" && said.Len() > 0 {
				t.Errorf("said %q, want %q", said.String(), want)
			}
			if lines := state.Lines(state.Compare(b.Steps[0].State, b.Names.State(two.Steps[0].Objects, nil), b.Steps[0].Mask, state.Rules{})); len(lines) > 0 {
				t.Errorf("judged by %q", lines)
			}
		})
	}
}

// TestOtherObjects checks that OtherObjects reports objects and fields that exist in only one of
// the runs, if the operator has written the object. It must not report different values of a field.
func TestOtherObjects(t *testing.T) {
	const shop = "metadata: {name: bread, namespace: default}\n"
	const owned = "metadata: {name: bread, namespace: default, ownerReferences: [{kind: Town, name: a, uid: u, apiVersion: v1, controller: true}]}\n"
	for name, tc := range map[string]struct {
		resource, one, two string
		lines              int
	}{
		"the same":          {"shops", shop + "spec: {size: 2}", shop + "spec: {size: 2}", 0},
		"another value":     {"shops", shop + "spec: {size: 2}", shop + "spec: {size: 3}", 0},
		"an object less":    {"shops", shop + "spec: {size: 2}", "", 1},
		"an object more":    {"shops", "", shop + "spec: {size: 2}", 1},
		"a child less":      {"shops", owned, "", 1},
		"a status less":     {"shops", shop + "status: {ready: true}", shop, 1},
		"a status more":     {"shops", shop, shop + "status: {ready: true}", 1},
		"an object, others": {"towns", shop + "spec: {size: 2}", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := undisturbedRun(t, tc.resource, tc.one), undisturbedRun(t, tc.resource, tc.two)
			b, err := Learn(one, two, nil, time.Second, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if lines := b.OtherObjects(one, two); len(lines) != tc.lines {
				t.Errorf("the runs differ in %q, want %d", lines, tc.lines)
			}
		})
	}
}
