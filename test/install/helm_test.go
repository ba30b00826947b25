// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	release   = "tidekeeper"
	namespace = framework.ManagerNamespace
)

func chartDir() string { return filepath.Join(framework.Root(), "charts", "tidekeeper") }

// helm runs helm without the user's configuration, and returns its output.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), mustBinary(t, "HELM_BIN", "helm"), args...)
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	out, err := command.CombinedOutput()
	return string(out), err
}

func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func mustBinary(t *testing.T, variable, name string) string {
	t.Helper()
	path, err := framework.Binary(variable, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
