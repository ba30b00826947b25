// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLine checks that a finding counts for the known mistake that explains it, and that every
// other entry in the report counts once.
func TestLine(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a": "after: 31.4\nfault: {kind: CrashAfter}\nproblems: [{lines: ['claims hare: it is 1Gi, not 2Gi']}]",
		"b": "after: 20\nfault: {kind: CrashBefore}\nproblems: [{lines: ['other', 'claims hare: it is 1Gi, not 2Gi']}]",
		"c": "after: 40\nfault: {kind: CrashAfter}\nproblems: [{lines: ['sets hare: deleted twice, not once']}]",
		"d": "after: 50\nfault: {kind: Freeze}\nproblems: [{lines: ['it is gone']}]",
		"e": "after: 60\nedits: [{field: spec.size}]\nproblem: {lines: ['not undone']}",
		"f": "after: 70\nedits: [{field: spec.image}]\nproblem: {lines: ['not undone']}",
	} {
		if err := os.WriteFile(filepath.Join(dir, "finding-"+name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	findings, err := readFindings(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := shown("1. claims\n   again: sandbox replay " + dir + "/finding-b.yaml\n2. sets\n   again: sandbox replay " + dir + "/finding-c.yaml\n")
	r := row{name: "hare", known: []mistake{
		{name: "#1: too small", says: []string{"claims hare", "1Gi, not 2Gi"}},
		{name: "#2: deleted", fault: "StaleStart", says: []string{"sets hare: deleted"}},
		{name: "#3: an image", edit: "spec.image", says: []string{"not undone"}},
	}}
	want := "| hare | #1: too small; #2: deleted; #3: an image | #1 after 20 s; #3 after 70 s | 1 | 7 | 10m0s |"
	if line := r.line(findings, files, 7, 10*time.Minute); line != want {
		t.Errorf("got %q, want %q", line, want)
	}
}

// TestChoose checks that names are chosen by their beginnings, and that each beginning must be known.
func TestChoose(t *testing.T) {
	known := []string{"hare-1", "hare-2", "manta-1"}
	for _, tc := range []struct{ beginnings, want, says string }{
		{"", "hare-1 hare-2 manta-1", ""},
		{"hare manta-1", "hare-1 hare-2 manta-1", ""},
		{"hare-2", "hare-2", ""},
		{"hare eel", "", "there is no eel, only hare-1, hare-2, manta-1"},
	} {
		chosen, err := choose(known, strings.Fields(tc.beginnings))
		if got := strings.Join(chosen, " "); got != tc.want || (err == nil) != (tc.says == "") || err != nil && err.Error() != tc.says {
			t.Errorf("%q: %q, %v", tc.beginnings, got, err)
		}
	}
}

// TestSavedBelongToRows checks that each saved finding is that of a row, which replaySaved replays.
func TestSavedBelongToRows(t *testing.T) {
	files, err := saved.ReadDir("found")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(f.Name(), r.name+"-") }) {
			t.Errorf("%s is of no row", f.Name())
		}
	}
}
