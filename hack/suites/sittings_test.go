// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The rounds of several sittings count together, also when some suites ran in one of them only.
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
All sittings:

| Suite | Rounds | With a failure | Busy processes | Commit | Date |
|---|---|---|---|---|---|
| cli | 12 | 0 | 8 | aaaa | 2026-01-01 |
| e2e | 20 | 1 | 8 | aaaa to bbbb | 2026-01-01 to 2026-01-02 |
`
	if out.String() != want {
		t.Errorf("printed:%s\nwant:%s", out.String(), want)
	}
}

// A file that is none of sittings is not overwritten.
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
