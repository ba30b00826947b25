// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// A step of a replay is over when all is as it was, after the last write that came then: not before,
// and not in the last step. What is not known to end alike ends as without it.
func TestKnownSteps(t *testing.T) {
	write := observe.Call{Verb: "update", Resource: "configmaps", Name: "a"}
	l := &Learnt{Steps: []LearntStep{
		{State: "a", Last: write, Lasts: 2, Quiet: 1.5}, {Last: write, Lasts: 1, Quiet: 1}, {State: "c", Quiet: 1}, {State: "d", Last: write, Lasts: 1, Quiet: 1},
	}}
	for step, known := range []bool{true, false, true, false, false} {
		if got := l.step(step); (got != nil) != known {
			t.Errorf("step %d is known: %t", step, got != nil)
		}
	}
	if (*Learnt)(nil).step(0) != nil {
		t.Error("without anything that was learnt, a step is known")
	}
	if !containsAll([]string{"pods", "secrets"}, []string{"secrets"}) || containsAll([]string{"pods"}, []string{"pods", "secrets"}) {
		t.Error("an operator that does not watch all yet has started, or one that does has not")
	}
	for _, tc := range []struct {
		name  string
		quiet time.Duration
		lasts int
		state string
		over  bool
	}{
		{"as before", 1500 * time.Millisecond, 2, "a", true},
		{"too soon", time.Second, 2, "a", false},
		{"a write is missing", 2 * time.Second, 1, "a", false},
		{"another state", time.Minute, 3, "b", false},
	} {
		if over := l.Steps[0].over(tc.quiet, tc.lasts, func() string { return tc.state }); over != tc.over {
			t.Errorf("%s: it is over: %t", tc.name, over)
		}
	}
}

// What was learnt is known only to the same program, workload, manifests and --quiet.
func TestLearntOfAnother(t *testing.T) {
	program := filepath.Join(t.TempDir(), "operator")
	build := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build("one")
	w := &workload.Workload{Steps: []workload.Step{{Run: "true"}, {Run: "false"}}}
	e := subject{workload: w, command: []string{program}, quiet: time.Second}
	l := e.learntFrom(w, &baseline.Baseline{Steps: []baseline.BaseStep{{Digest: "a", Lasts: 1, Quiet: time.Second}, {}, {}}})
	if l == nil || len(l.Steps) != 3 || l.Steps[0] != (LearntStep{State: "a", Lasts: 1, Quiet: 1}) || e.known(l) != l {
		t.Fatalf("what was learnt of it is %+v, or not known", l)
	}
	for name, change := range map[string]func(*subject){
		"flags":   func(e *subject) { e.command = []string{program, "--fast"} },
		"quiet":   func(e *subject) { e.quiet = time.Minute },
		"steps":   func(e *subject) { e.workload = &workload.Workload{Steps: w.Steps[:1]} },
		"program": func(*subject) { build("two") },
	} {
		other := e
		if change(&other); other.known(l) != nil {
			t.Errorf("other %s: what was learnt is known", name)
		}
	}
}
