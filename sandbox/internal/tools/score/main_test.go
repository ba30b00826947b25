// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
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
	}}
	want := "| hare | #1: too small; #2: deleted | #1 after 20 s | 1 | 7 | 10m0s |"
	if line := r.line(findings, files, 7, 10*time.Minute); line != want {
		t.Errorf("got %q, want %q", line, want)
	}
}
