// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestFindingCarriesFlags checks that the file of a finding contains all flags that a replay
// depends on.
func TestFindingCarriesFlags(t *testing.T) {
	w := &workload.Workload{HostNetwork: true, ServiceAccount: "shop/operator", Steps: []workload.Step{{Run: "true"}}}
	if err := w.Compile(); err != nil {
		t.Fatal(err)
	}
	e := &Explorer{
		Testbeds: &testbed.Maker{Setup: lab.Setup{Workload: w, Command: []string{"./operator"}}, FailOnLog: regexp.MustCompile("ERROR")}, Workload: w,
		Limits: testbed.Limits{Quiet: time.Second, Settle: 2 * time.Minute, Patience: 3 * time.Second}, Hold: 4 * time.Second,
	}
	missing := judge.Problem{Oracle: judge.OtherState, Step: 1, Lines: []string{"secrets default/a: it is missing"}}
	f := e.subject().newFinding(&faults.Fault{Kind: "Restart", Step: 1, Until: 1}, &judge.Outcome{Problems: []judge.Problem{missing}}, nil)
	dir := t.TempDir()
	book, err := Tool.Open(dir, results.About{})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	if err := book.Found(f); err != nil {
		t.Fatal(err)
	}
	read, err := Tool.ReadFinding(filepath.Join(dir, results.File(f)))
	if err != nil {
		t.Fatal(err)
	}
	want := results.Flags{FailOnLog: "ERROR"}
	want.Quiet.Duration, want.Settle.Duration, want.Patience.Duration, want.Hold.Duration = time.Second, 2*time.Minute, 3*time.Second, 4*time.Second
	if read.Flags != want || !read.Workload.HostNetwork || read.Workload.ServiceAccount != "shop/operator" {
		t.Errorf("%+v, host network: %t, account %s", read.Flags, read.Workload.HostNetwork, read.Workload.ServiceAccount)
	}
}

// TestFlagsThatJudge checks that all faults are repeated after a change of any flag that affects the
// verdict.
func TestFlagsThatJudge(t *testing.T) {
	w := &workload.Workload{Steps: []workload.Step{{Run: "true"}}}
	hashed := func(limits testbed.Limits, hold time.Duration) map[string]string {
		t.Helper()
		e := &Explorer{Testbeds: &testbed.Maker{Setup: lab.Setup{Workload: w, Command: []string{"true"}}}, Workload: w, Limits: limits, Hold: hold}
		about, err := results.NewAbout(e.inputs())
		if err != nil {
			t.Fatal(err)
		}
		return about.Contents
	}
	before := hashed(testbed.Limits{}, 0)
	for name, now := range map[string]map[string]string{
		"--quiet":    hashed(testbed.Limits{Quiet: 1}, 0),
		"--settle":   hashed(testbed.Limits{Settle: 1}, 0),
		"--patience": hashed(testbed.Limits{Patience: 1}, 0),
		"--hold":     hashed(testbed.Limits{}, 1),
	} {
		if maps.Equal(now, before) {
			t.Errorf("%s does not matter", name)
		}
	}
	if !maps.Equal(hashed(testbed.Limits{}, 0), before) {
		t.Error("the same flags matter")
	}
}

// TestPossible checks that a fault that requires two processes is rejected if only a single process
// can run, and that the error advises the user what to do instead.
func TestPossible(t *testing.T) {
	pause, crash := &faults.Fault{Kind: "Pause", Step: 1}, &faults.Fault{Kind: "CrashAfter", Step: 1}
	for _, tc := range []struct {
		name         string
		fault        *faults.Fault
		alone, asked bool
		says         string
	}{
		{name: "without a fault", alone: true},
		{name: "a crash", fault: crash, alone: true, asked: true},
		{name: "networks of their own", fault: pause},
		{name: "--host-network", fault: pause, alone: true, asked: true, says: "play it without --host-network"},
		{name: "a machine without namespaces", fault: pause, alone: true, says: "permit user namespaces on this machine"},
	} {
		err := (&Finding{Fault: tc.fault}).possible(tc.alone, tc.asked)
		if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}

// TestSame checks that a replay distinguishes the finding from another problem with the same fault.
func TestSame(t *testing.T) {
	finding := func(oracle judge.Oracle, lines ...string) *Finding {
		return &Finding{Problems: []judge.Problem{{Oracle: oracle, Lines: lines}}}
	}
	const missing, other = "secrets default/a: it is missing", "secrets default/b: it is missing"
	found := finding(judge.OtherState, missing)
	const rule = ": there are three pods at most does not hold"
	for _, tc := range []struct {
		name  string
		found *Finding
		again *Finding
		same  bool
	}{
		{"the same", found, found, true},
		{"the same, and more", found, finding(judge.OtherState, other, missing), true},
		{"another object", found, finding(judge.OtherState, other), false},
		{"another oracle", found, finding(judge.OtherCounts, missing), false},
		{"another number", finding(judge.OtherCounts, "pods default/a: created twice, not once"), finding(judge.OtherCounts, "pods default/a: created 3 times, not twice"), true},
		{"another change", finding(judge.OtherCounts, "pods default/a: created twice, not once"), finding(judge.OtherCounts, "pods default/a: deleted twice, not once"), false},
		{
			"an object with another generated name",
			finding(judge.Broken, "pods default/web-4pf2t"+rule), finding(judge.Broken, "pods default/web-j279z"+rule), true,
		},
		{
			"an object with another name",
			finding(judge.Broken, "pods default/web-4pf2t"+rule), finding(judge.Broken, "pods default/job-j279z"+rule), false,
		},
	} {
		if got := tc.found.Same(tc.again); got != tc.same {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}
