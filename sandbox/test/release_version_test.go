// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleaseVersion checks that hack/release-version accepts a tag only if it is a valid version
// and the client module has a tag with the same version. For any other tag, the release workflow
// stops before it changes anything.
func TestReleaseVersion(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../hack/release-version")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "release-version")
	if err := os.WriteFile(file, script, 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
	run := func(env string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{
		{"git", "init", "-q"},
		{"git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "a"},
		{"git", "tag", "sandbox/client/v1.2.3"},
		{"git", "tag", "sandbox/client/v1.3.0-rc.1"},
	} {
		if out, err := run("LC_ALL=C", args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	for tag, want := range map[string]string{
		"sandbox/v1.2.3":        "v1.2.3\n",
		"sandbox/v1.3.0-rc.1":   "v1.3.0-rc.1\n",
		"sandbox/v1.2.4":        "no tag sandbox/client/v1.2.4",
		"sandbox/v1.2":          "is no version to release",
		"sandbox/v1.2.3+x":      "is no version to release",
		"v1.2.3":                "is no version to release",
		"sandbox/client/v1.2.3": "is no version to release",
	} {
		out, err := run("GITHUB_REF_NAME="+tag, file)
		if ok := strings.HasPrefix(want, "v"); ok != (err == nil) || ok && out != want || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nwant: %s", tag, err, out, want)
		}
	}
}
