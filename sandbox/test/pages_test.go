// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client/console"
)

// The README is followed with its example, in a folder that looks like this one.
func TestREADME(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	project(t, filepath.Join(dir, "examples", "guestbook"))
	followPage(t, "../README.md", 8, dir)
}

// The quickstart is followed with a project as kubebuilder lays it out, whose own make build puts its
// program into the project's bin.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	project(t, filepath.Join(dir, "guestbook"))
	followPage(t, "../docs/quickstart.md", 8, dir)
}

// followPage runs the commands of a page in a shell, of which there must be at least that many, and
// compares their output.
func followPage(t *testing.T, name string, least int, dir string) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	steps := console.Steps(string(page))
	if len(steps) < least {
		t.Fatalf("%s has %d commands", name, len(steps))
	}
	sh := console.Start(t, dir)
	for _, s := range steps {
		if s.Command == "make build" || strings.HasPrefix(s.Command, "go build ") {
			continue // Checkout and project have built it.
		}
		check := func() error {
			got, code := sh.Run(t, s.Command)
			if code == 0 && console.Shows(got, s.Want, console.Constant) {
				return nil
			}
			return fmt.Errorf("exit code %d\n%s\nthe page shows:\n%s", code, strings.Join(got, "\n"), strings.Join(s.Want, "\n"))
		}
		command := fmt.Sprintf("%s:%d: $ %s", name, s.Line, s.Command)
		if strings.HasPrefix(s.Command, "kubectl get ") {
			waitFor(t, 5*time.Second, func() string { // A reader is slower than this test.
				if err := check(); err != nil {
					return fmt.Sprintf("%s: %v", command, err)
				}
				return ""
			})
		} else if err := check(); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

// checkout returns a folder that has the programs of this one after make build.
func checkout(t *testing.T) string {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// The sandbox is kubectl when it is started under that name.
	if err := os.Symlink(binary, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	// A sandbox listens on free ports of loopback only, and ends with this test.
	script := fmt.Sprintf(`#!/bin/sh
export HOME=%s
unset SANDBOX_DATA_DIR XDG_STATE_HOME
case $1 in up) shift; exec %s up --owner %d "$@";; esac
exec %s "$@"
`, home, binary, os.Getpid(), binary)
	if err := os.WriteFile(filepath.Join(bin, "sandbox"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(bin, "sandbox"), "down")
		down.Dir = dir
		_ = down.Run()
	})
	return dir
}

// project puts the example of a project into a folder, with its program.
func project(t *testing.T, folder string) {
	t.Helper()
	if err := os.CopyFS(folder, os.DirFS("../examples/guestbook")); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(folder, "bin", "manager"), "./cmd")
	build.Dir = "../examples/guestbook"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
