// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/test/soundness"
)

// Of the mistakes that explore and fuzz must find, one of each sort is found, and nothing in an
// operator that does the same without it. make bench-soundness plays all of them.
func TestSoundness(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	player := soundness.Player{Sandbox: soundness.Program(binary), Operators: filepath.Join(dir, "operators"), Dir: dir}
	build := exec.Command("go", "build", "-trimpath", "-o", player.Operators, "./soundness/operators")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operators: %v\n%s", err, out)
	}
	slice := []string{"replaced", "ready-early", "empty-list", "label", "writes-back", "fixed-port"}
	for _, pair := range soundness.Pairs() {
		if !slices.Contains(slice, pair.Name) {
			continue
		}
		t.Run(pair.Name, func(t *testing.T) {
			t.Parallel()
			if r := player.Play(t.Context(), pair); !r.OK() {
				t.Errorf("%s%s", r.Line(), r.Reports())
			}
		})
	}
}
