// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"strings"
	"testing"
)

// TestExploreDryRun checks that a dry run plays no fault and keeps no results, and prints what is wrong
// without a fault, what is not judged, and the faults to play.
func TestExploreDryRun(t *testing.T) {
	text, err := os.ReadFile(shopWorkload)
	if err != nil {
		t.Fatal(err)
	}
	const broken = "\n- {name: there is no bread, resource: configmaps, rule: 'object.metadata.name != \"bread\"'}\n"
	for name, tc := range map[string]struct {
		workload string
		code     int
		says     []string
	}{
		"nothing is wrong": {string(text), 0, []string{"\nWithout a fault, nothing is found.\n"}},
		"an invariant":     {strings.TrimSpace(string(text)) + broken, 2, []string{"\nFound without a fault:\n", "there is no bread"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := play(t, "explore", "--dry-run", "--workload", workloadFile(t, tc.workload), "--dir", dir, "--quiet", "1500ms", "--jobs", "2", "--for", "10s",
				"--only", "Crash", "--", "sh", "-c", `echo "ERROR the oven is cold, try 1"; echo "ERROR the oven is cold, try 2"; exec `+shop(t)+` --dated`)
			if r.code != tc.code {
				t.Errorf("exit code %d, want %d\n%s", r.code, tc.code, r.stderr)
			}
			for _, want := range append(tc.says,
				"  ERROR the oven is cold, try 1\n", "- {resource: secrets, path: '", "\nFaults to play: ", "CrashAfter 4", "\nWith --jobs 2 they take ", "in 10s, about ",
				"\nThe first of them:\n", "  CrashAfter at step 1, create secrets default/receipt-bread #1\n",
			) {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("it does not say %q:\n%s", want, r.stdout)
				}
			}
			for _, not := range []string{"try 2", "Freeze at"} {
				if strings.Contains(r.stdout, not) {
					t.Errorf("it says %q:\n%s", not, r.stdout)
				}
			}
			if kept, err := os.ReadDir(dir); err != nil || len(kept) > 0 {
				t.Errorf("it keeps %v, %v", kept, err)
			}
		})
	}
}
