// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"path/filepath"
	"slices"
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
