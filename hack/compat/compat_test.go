// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func replaced(t *testing.T, in, from, to string) string {
	t.Helper()
	if strings.Count(in, from) != 1 {
		t.Fatalf("%q is there %d times, want once", from, strings.Count(in, from))
	}
	return strings.Replace(in, from, to, 1)
}

func TestBreaksOfASurface(t *testing.T) {
	before := surface{
		"flag tidekeeper --wait": {Type: "duration", Default: "30s", Min: "1s", Max: "1h0m0s"},
		"flag tidekeeper --many": {Type: "int", Default: "9", Min: "2"},
		"metric tidekeeper_x":    {Type: "counter by pool"},
		"event NodePool Joined":  {},
	}
	const wait, many = "flag tidekeeper --wait", "flag tidekeeper --many"
	for name, tt := range map[string]struct {
		of     string
		to     thing
		breaks []string
	}{
		"the same":            {of: wait, to: before[wait]},
		"a new thing":         {of: "reason NodePool New"},
		"a wider range":       {of: wait, to: thing{"duration", "30s", "500ms", "2h0m0s"}},
		"no range":            {of: wait, to: thing{Type: "duration", Default: "30s"}},
		"another type":        {wait, thing{Type: "int", Default: "30s"}, []string{wait + `: was "duration", and is "int"`}},
		"another default":     {wait, thing{"duration", "31s", "1s", "1h0m0s"}, []string{wait + ": the default was 30s, and is 31s"}},
		"a higher minimum":    {wait, thing{"duration", "30s", "2s", "1h0m0s"}, []string{wait + ": 1s to 1h0m0s were accepted, and are 2s to 1h0m0s"}},
		"a lower maximum":     {wait, thing{"duration", "30s", "1s", "50m0s"}, []string{wait + ": 1s to 1h0m0s were accepted, and are 1s to 50m0s"}},
		"a first maximum":     {many, thing{"int", "9", "2", "100"}, []string{many + ": 2 to none were accepted, and are 2 to 100"}},
		"numbers, not texts":  {many, thing{"int", "9", "10", ""}, []string{many + ": 2 to none were accepted, and are 10 to none"}},
		"a label of a metric": {"metric tidekeeper_x", thing{Type: "counter by pool, zone"}, []string{`metric tidekeeper_x: was "counter by pool", and is "counter by pool, zone"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := maps.Clone(before)
			after[tt.of] = tt.to
			if found := text(compareSurfaces(before, after)); !slices.Equal(found, tt.breaks) {
				t.Errorf("found %q, want %q", found, tt.breaks)
			}
		})
	}
	for name := range before {
		after := maps.Clone(before)
		delete(after, name)
		if found := text(compareSurfaces(before, after)); !slices.Equal(found, []string{name + ": is gone"}) {
			t.Errorf("without %s: %q", name, found)
		}
	}
}

// TestSurfaceOfTheTree checks that the surface contains entries of each type. All entries named
// here are documented.
func TestSurfaceOfTheTree(t *testing.T) {
	t.Chdir("../..")
	s, err := collect()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"flag tidekeeper --controllers", "flag kubectl tide pools plan --filename", "flag kubectl tide pools plan -f",
		"command kubectl tide restarts next", "metric tidekeeper_nodepool_headroom", "exit code kubectl tide NotDone",
		"reason NodePool Healthy", "event NodePool DriftCorrected", "condition Ready", "reason ScheduledRestart Frozen",
		"outcome ScheduledRestart Missed", "name ScheduledRestart tidekeeper.dev/restart-now", "value cleanup.enabled",
		"json kubectl tide pools fit [].pool", "json kubectl tide pods watch .pod", "json kubectl tide restarts forecast .summary.assumed",
		"output kubectl tide pools plan -o wide", "alert TidekeeperDown", "file --restart-queries .queries[].name",
	} {
		if _, ok := s[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	if share := s["flag tidekeeper --no-execute-share"]; share != (thing{"int", "10", "1", "100"}) {
		t.Errorf("--no-execute-share is %+v", share)
	}
}

// TestNamedBreaksPass checks that a breaking change is allowed if the changelog names it above the
// latest version's section.
func TestNamedBreaksPass(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- Other things, `flag b`.\n- **Breaking**: `flag\n  a` is gone: use `flag b`.\n\n" +
		"## [0.1.0] - 2026-11-26\n\n- **Breaking**: `flag c`.\n"
	for name, passes := range map[string]bool{"flag a": true, "flag c": false, "flag d": false} {
		err := unnamed([]breach{{name, "is gone"}}, changelog, "v0.1.0")
		if (err == nil) != passes {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), name+": is gone") || !strings.Contains(err.Error(), "**Breaking**: `"+name+"`")) {
			t.Errorf("the error does not say how to name it: %v", err)
		}
	}
	if err := unnamed([]breach{{"flag a", "is gone"}}, "## [Unreleased]\n", "v0.1.0"); err == nil || !strings.Contains(err.Error(), "make baseline VERSION=v0.1.0") {
		t.Errorf("before the release: %v", err)
	}
}

type inner struct {
	Seen *time.Time `json:"seen"`
	Loop *inner     `json:"loop,omitempty"`
}

type printed struct {
	inner

	Names  []string         `json:"names"`
	Counts map[string]int32 `json:"counts"`
	Plain  bool
	hidden string
	Secret string `json:"-"`
}

func TestFieldsOfJSON(t *testing.T) {
	s := surface{}
	s.addFields("json x ", reflect.TypeOf([]printed{{hidden: ""}}))
	want := surface{
		"json x [].seen": {Type: "time.Time"}, "json x [].loop": {Type: "as above"}, "json x [].names[]": {Type: "string"},
		"json x [].counts{}": {Type: "integer"}, "json x [].Plain": {Type: "boolean"},
	}
	if !maps.Equal(s, want) {
		t.Errorf("the fields are %v, want %v", s, want)
	}
}
