// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// What was learnt is read as it was kept, by the same operator with the same flags, and by no other.
func TestKeptIsRecalled(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "operator")
	if err := os.WriteFile(program, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &Workload{Nodes: new(int), Steps: []Step{{Name: "a", Run: "true"}}, Unjudged: []Unjudged{{Resource: "shops", Path: "status.a"}}}
	e := &Explorer{Command: []string{program, "--flag"}, Workload: w, Dir: dir, Quiet: time.Second}
	f := &Finding{Evidence: results.Evidence{Command: e.Command}, Workload: w, Fault: &Fault{Kind: "CrashAfter", Step: 1}}
	mask := state.NewMask()
	mask.Add(state.Masked{Object: "configmaps default/a", Path: "data.b", Seen: []string{"1", "2"}, Why: differsUndisturbed})
	b := &Baseline{
		Steps: []BaseStep{{State: State{"configmaps default/a": {{"data.a": "1"}}}, Mask: mask, Quiet: time.Second, Last: Call{Verb: "create"}, Lasts: 2}, {Mask: state.NewMask(), Edited: map[string]bool{"a": true}}},
		Locks: map[string]bool{"leases": true}, Habits: map[Habit]bool{{What: "a", Field: "b"}: true}, Managers: map[string]bool{"kubectl": true},
		Counts: [2]Counts{{Created: map[string]int{"a": 1}}, {Deleted: map[string]int{"b": 2}}}, Quiet: 2 * time.Second,
		names: anonymizer{stable: map[string]bool{"configmaps default/a": true}, unjudged: w.Unjudged},
	}
	if err := e.keep(f, b); err != nil {
		t.Fatal(err)
	}
	if got, err := e.recall(f, dir); err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("%+v, %v, want %+v", got, err, b)
	}
	other := *e
	other.Quiet = 2 * time.Second
	if got, err := other.recall(f, dir); err != nil || got != nil {
		t.Errorf("with another flag: %+v, %v", got, err)
	}
	other = *e
	other.Command = []string{program}
	if got, err := other.recall(f, dir); err != nil || got != nil {
		t.Errorf("with another argument: %+v, %v", got, err)
	}
	if err := os.WriteFile(program, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := e.recall(f, dir); err != nil || got != nil {
		t.Errorf("with another program: %+v, %v", got, err)
	}
}
