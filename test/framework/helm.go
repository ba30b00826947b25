// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Chart returns the directory of Tidekeeper's Helm chart.
func Chart() string { return filepath.Join(Root(), "charts", "tidekeeper") }

// Helm runs helm without the user's configuration, and returns its output.
func Helm(t testing.TB, args ...string) (string, error) {
	t.Helper()
	path, err := Binary("HELM_BIN", "helm")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := command.CombinedOutput()
	return string(out), err
}
