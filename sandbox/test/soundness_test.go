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

// TestSoundness checks that explore and fuzz find one mistake of each sort, and report nothing for
// a twin operator that behaves the same without the mistake. "make bench-soundness" covers all
// pairs of such operators.
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
			takeTurn(t)
			if r := player.Play(t.Context(), pair); !r.OK() {
				t.Errorf("%s%s", r.Line(), r.Reports())
			}
		})
	}
}
