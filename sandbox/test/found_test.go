// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestSavedFindings checks that a published operator that is not changed fails again with the saved
// findings of explore. It compiles the operator from its source in the Go module proxy.
func TestSavedFindings(t *testing.T) {
	t.Parallel()
	takeTurn(t)
	command := exec.CommandContext(t.Context(), "go", "run", "./internal/tools/score", "found", binary, t.TempDir(), "rabbitmq-1.6.0-648", "rabbitmq-1.6.0-758", "rabbitmq-1.6.0-782")
	command.Dir = ".."
	out, err := command.CombinedOutput()
	text := string(out)
	if err != nil && strings.Contains(text, "is not served here") {
		t.Skip(text)
	}
	if again := strings.Count(text, ": found again in "); err != nil || again != 3 {
		t.Errorf("%d of 3 findings came again: %v\n%s", again, err, text)
	}
	t.Log(text)
}
