// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// What was learnt is read as it was kept, about the same sample and operator, and about no other.
func TestKeptIsRecalled(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "operator")
	if err := os.WriteFile(program, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(sample map[string]any) *Fuzzer {
		return &Fuzzer{Explorer: &explore.Explorer{Command: []string{program}, Dir: dir, Workload: &explore.Workload{Nodes: new(int)}}, Sample: sample}
	}
	recall := func(f *Fuzzer) bool {
		t.Helper()
		about, err := f.about()
		if err != nil {
			t.Fatal(err)
		}
		known, err := f.recall(&about, dir)
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	f := of(map[string]any{"spec": map[string]any{"n": int64(1)}})
	f.base = &baseline{
		before: explore.State{"a": {{"b": "c"}}}, state: explore.State{"a": {{"b": "d"}}}, mask: NewMask(nil), quiet: 1, took: 2 * time.Second, busy: 0.5, observed: true,
		fresh: true, idle: true, watched: []string{"things"}, reports: "x", habits: map[explore.Habit]bool{{What: "a"}: true}, managers: map[string]bool{"m": true},
	}
	f.base.mask.Add(state.Masked{Object: "a", Path: "b", Why: differsUnedited})
	about, err := f.about()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.keep(&about); err != nil {
		t.Fatal(err)
	}
	again := of(map[string]any{"spec": map[string]any{"n": int64(1)}})
	again.Ignore, f.base.mask.own = []string{}, []string{}
	if !recall(again) || !reflect.DeepEqual(again.base, f.base) {
		t.Errorf("got %+v, want %+v", again.base, f.base)
	}
	if recall(of(map[string]any{"spec": map[string]any{"n": int64(2)}})) {
		t.Error("it is known of another sample")
	}
	if err := os.WriteFile(program, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if recall(again) {
		t.Error("it is known of another program")
	}
}
