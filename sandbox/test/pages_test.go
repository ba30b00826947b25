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

// TestREADME checks that the README's commands produce the output shown there, in a folder with the
// built programs and the guestbook example.
func TestREADME(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	project(t, filepath.Join(dir, "examples", "guestbook"))
	followPage(t, "../README.md", 8, dir)
}

// TestQuickstart checks that the quickstart's commands produce the output shown there, in a project
// with kubebuilder's layout whose "make build" writes the operator to the bin folder.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	project(t, filepath.Join(dir, "guestbook"))
	followPage(t, "../docs/quickstart.md", 8, dir)
}

// followPage runs the commands of a page in a shell and compares their output with the page. It
// fails the test if the page has fewer than the given number of commands, "least".
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
			continue // The functions "checkout" and "project" have already built these programs.
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
			waitFor(t, 5*time.Second, func() string { // Retry, because a reader would run the command later than the test does.
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

// checkout returns a folder with a bin folder that contains the programs built by "make build".
func checkout(t *testing.T) string {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// The sandbox binary acts as kubectl when it is started under this name.
	if err := os.Symlink(binary, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	// The page's sandbox must not use fixed ports, and must stop at the end of the test.
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

// project copies the guestbook example into a folder and builds its operator.
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
