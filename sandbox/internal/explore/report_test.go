// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestReport checks that reports name the step of each problem, and explain the fault's real-world
// cause only for findings with a fault.
func TestReport(t *testing.T) {
	w := &workload.Workload{Steps: []workload.Step{{Name: "an order is made"}}}
	finding := func(id, line string, f *faults.Fault) *Finding {
		return &Finding{ID: id, Workload: w, Fault: f, Problems: []judge.Problem{{Oracle: judge.Failed, Step: 1, Lines: []string{line}}}}
	}
	crash := &faults.Fault{Kind: "Restart", Step: 1, Until: 1}
	r := &results.Result[*Finding]{
		Played: []results.Played{{ID: "a", Outcome: reached}, {ID: "b", Error: "etcd crashed"}, {ID: "c", Outcome: results.NotReached}}, Planned: 5, Left: 2, Took: 90 * time.Second,
		Findings: []*Finding{finding("a", "panic: oh", crash), finding(undisturbed, "exit status 1", nil)},
		Remarks:  streamed(&baseline.Baseline{Watched: []string{"pods", "secrets"}, Listed: []string{"pods"}}),
	}
	var text bytes.Buffer
	Tool.Text(&text, r, "explore")
	page := filepath.Join(t.TempDir(), "report.html")
	if err := Tool.HTML(page, r); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(filepath.Clean(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"operator failed (step 1):", "panic: oh", "exit status 1", "without any fault",
		"\nPlayed 3 of 5 faults in 1m30s, of which 1 were reached and 1 could not be judged; 2 not played. Found: 2.\n",
		"Stale first lists were not played for secrets: ",
	} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, text.String())
		}
	}
	if n := strings.Count(text.String(), "can it happen: "+crash.Possible()); n != 1 {
		t.Errorf("%d findings can happen, want 1:\n%s", n, text.String())
	}
	if n := strings.Count(string(html), "Can it happen?"); n != 1 || !strings.Contains(string(html), "panic: oh") {
		t.Errorf("in the page, %d findings can happen, want 1:\n%s", n, html)
	}
}
