// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEachFileIsPlayed checks that a test runs each workload file, because an unused file would
// rot.
func TestEachFileIsPlayed(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"common.yaml"}
	for _, w := range workloads {
		want = append(want, w.name+".yaml")
	}
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the files are %q, want %q", files, want)
	}
}

// TestPageNamesEachWorkload checks that both tables of reliability.md have a row for each workload:
// what happens, and what was played.
func TestPageNamesEachWorkload(t *testing.T) {
	page, err := os.ReadFile("../reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		if rows := strings.Count(string(page), "\n| `"+w.name+"` |"); rows != 2 {
			t.Errorf("the page has %d rows for the workload %s, want 2", rows, w.name)
		}
	}
}
