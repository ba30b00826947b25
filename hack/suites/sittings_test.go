// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSittingsAddUp checks that the rounds of several sittings are summed, even if a suite ran in
// only one sitting.
func TestSittingsAddUp(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flakes.json")
	sitting := func(date, commit string, suites map[string]*suiteRounds) {
		t.Helper()
		all, err := readSittings(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := append(all, rounds{Date: date, Commit: commit, Busy: 8, Suites: suites}).write(file); err != nil {
			t.Fatal(err)
		}
	}
	sitting("2026-01-01", "aaaa", map[string]*suiteRounds{"e2e": {Rounds: 12, Clean: 11, Failed: map[string]int{"e2e TestA": 1}}, "cli": {Rounds: 12, Clean: 12}})
	sitting("2026-01-02", "bbbb", map[string]*suiteRounds{"e2e": {Rounds: 8, Clean: 8}})
	all, err := readSittings(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	all.print(&out)
	const want = `
| Suite | Rounds | With a failure | What failed | Busy processes | Commit | Date |
|---|---|---|---|---|---|---|
| cli | 12 | 0 |  | 8 | aaaa | 2026-01-01 |
| e2e | 20 | 1 | e2e TestA (1) | 8 | aaaa to bbbb | 2026-01-01 to 2026-01-02 |
`
	if out.String() != want {
		t.Errorf("printed:%s\nwant:%s", out.String(), want)
	}
	page, err := os.ReadFile(tablePath(file))
	if err != nil || !strings.HasSuffix(string(page), want) {
		t.Errorf("beside the file is the page\n%s, %v", page, err)
	}
	var names []string
	for _, s := range all.fewest([]suite{{name: "e2e"}, {name: "long", seconds: 9}, {name: "cli"}, {name: "short", seconds: 1}}, 3) {
		names = append(names, s.name)
	}
	if want := []string{"short", "long", "cli"}; !slices.Equal(names, want) {
		t.Errorf("the fewest rounds have %q, want %q", names, want)
	}
}

// TestCommittedRounds checks that test/flakes.md is generated from test/flakes.json, and that all
// suites in it exist.
func TestCommittedRounds(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "test", "flakes.json")
	all, err := readSittings(file)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d sittings, %v", len(all), err)
	}
	if page, err := os.ReadFile(tablePath(file)); err != nil || string(page) != all.page() {
		t.Errorf("%s is not of %s: make flakes ROUNDS=0 writes it (%v)", tablePath(file), file, err)
	}
	for name := range all.sums() {
		if _, err := choose([]string{name}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestOtherFileOfSittings checks that a file that does not contain sittings is rejected instead of
// being overwritten.
func TestOtherFileOfSittings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flakes.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSittings(file); err == nil || !strings.Contains(err.Error(), "remove it to count from the start") {
		t.Errorf("it says %v", err)
	}
	if all, err := readSittings(file + ".none"); err != nil || all != nil {
		t.Errorf("without a file there is %v, %v", all, err)
	}
}

// TestFlakesRefusesNegativeNumbers checks that negative numbers are rejected before anything runs.
// The context has already ended, so that nothing would run if they were accepted.
func TestFlakesRefusesNegativeNumbers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, flag := range []string{"--rounds=-1", "--busy=-1", "--fewest=-1", "--for=-1s"} {
		if err := flakes(ctx, []string{flag, "plot"}); err == nil || !strings.Contains(err.Error(), "are 0 or more") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
