// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

func TestLogErrors(t *testing.T) {
	t.Parallel()
	got := logErrors([]string{
		"I0601 10:00:00.000000  1 main.go:1] Starting",
		"E0601 10:00:01.000000  1 main.go:7] cannot sell bread",
		"E0601 10:00:02.500000  1 main.go:7] cannot sell bread",
		`{"level":"info","msg":"mirrored"}`, // not a separate word
		`{"level":"error","msg":"no oven"}`,
		`time=now level=error msg="no oven"`,
		"panic: no flour",
		"0 terrors",
	})
	want := []string{"E0601 10:00:01.000000  1 main.go:7] cannot sell bread", `{"level":"error","msg":"no oven"}`, `time=now level=error msg="no oven"`, "panic: no flour"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNotServed(t *testing.T) {
	t.Parallel()
	got := notServed([]observe.Request{
		{Verb: "list", Resource: "poddisruptionbudgets.policy", Upstream: 404},
		{Verb: "watchlist", Resource: "poddisruptionbudgets.policy", Upstream: 404},
		{Verb: "get", Path: "/apis/policy/v1beta1", Upstream: 404},
		{Verb: "get", Resource: "configmaps", Namespace: "default", Name: "bread", Upstream: 404}, // the object is missing, not the kind
		{Verb: "get", Path: "/metrics", Upstream: 404},
		{Verb: "list", Resource: "pods", Upstream: 200},
	})
	if want := []string{"poddisruptionbudgets.policy", "policy/v1beta1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	if got, want := idle([]observe.StepOutcome{{}, {Idle: 3}}), []string{"at the end of step 1: 3 times"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLasting checks the time that faults take, depending on the number of sandboxes.
func TestLasting(t *testing.T) {
	t.Parallel()
	crash, long := faults.Planned{Fault: faults.Fault{Kind: "CrashAfter"}}, faults.Planned{Fault: faults.Fault{Kind: "FreezeLong"}}
	for _, tc := range []struct {
		left       []faults.Planned
		jobs       int
		oneAtATime bool
		want       time.Duration
	}{
		{[]faults.Planned{crash, crash, crash, crash}, 2, false, 40 * time.Second},
		{[]faults.Planned{crash, crash, long, long}, 2, false, 120 * time.Second},
		{[]faults.Planned{crash, long}, 1, true, 140 * time.Second},
		{[]faults.Planned{crash}, 0, false, 20 * time.Second},
	} {
		d := dryRun{base: &baseline.Baseline{}, undisturbed: &judge.Outcome{Record: observe.Record{Took: 20 * time.Second}}, left: tc.left, hold: 100 * time.Second, oneAtATime: tc.oneAtATime}
		d.plan.Jobs = tc.jobs
		if got := d.lasting(); got != tc.want {
			t.Errorf("%d faults with %d sandboxes take %s, want %s", len(tc.left), tc.jobs, got, tc.want)
		}
	}
}
