// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// entries recursively lists the contents of a directory.
func entries(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); name != "." {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

func wantMode(t *testing.T, file string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("the mode of %s is %o, want %o", file, got, want)
	}
}

// kubeconfigPlace creates a symlink to a world-readable file, and returns its path. A kubeconfig
// that is written to this path must replace the symlink.
func kubeconfigPlace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, "kubeconfig")
	if err := os.Symlink(open, place); err != nil {
		t.Fatal(err)
	}
	return place
}

// wantSecret fails the test if other users can read the kubeconfig that was written to the path
// from kubeconfigPlace.
func wantSecret(t *testing.T, place string) {
	t.Helper()
	wantMode(t, place, 0o600)
	if open, err := os.ReadFile(filepath.Join(filepath.Dir(place), "open")); err != nil || len(open) > 0 {
		t.Errorf("the world-readable file has %d bytes, %v", len(open), err)
	}
	clientOf(t, place)
}

// TestDirectoryOfAnotherProgram checks that "up" rejects a directory that another program uses and
// changes nothing in it, even if it contains a file named "lock" as sandbox directories do.
func TestDirectoryOfAnotherProgram(t *testing.T) {
	for _, lock := range []string{"", "1\n", "precious"} {
		dir := t.TempDir()
		for _, name := range []string{"logs", "etcd", "pki"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name, "precious"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "lock"), []byte(lock), 0o600); err != nil {
			t.Fatal(err)
		}
		before := entries(t, dir)
		for _, args := range [][]string{{"--detach"}, {"--detach", "--fresh"}, {"--detach", owned}, nil} {
			s := sandbox{dir: dir}
			wantError(t, s.run(t, append([]string{"up"}, args...)...), "files in it that are not a sandbox's")
			s.run(t, "down")
		}
		if after := entries(t, dir); after != before {
			t.Errorf("the directory had %s and now has %s", before, after)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || string(text) != lock {
			t.Errorf("its lock says %q, %v, want %q", text, err, lock)
		}
	}
}

// TestDownSaysWhatIsTrue checks that "down" does not report success if it could not send the stop
// request to the sandbox, and does not kill a process only because a file contains its PID.
func TestDownSaysWhatIsTrue(t *testing.T) {
	t.Parallel()
	bystander := exec.Command("sleep", "infinity")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	})
	for name, lock := range map[string]string{"of no process": "", "of another process": fmt.Sprintln(bystander.Process.Pid)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sandbox{dir: t.TempDir()}
			file, err := os.Create(filepath.Join(s.dir, "lock"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteString(lock); err != nil {
				t.Fatal(err)
			}
			if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			wantError(t, s.run(t, "down"), "has the data directory "+s.dir+" locked")
		})
	}
	t.Cleanup(func() {
		if !alive(bystander.Process.Pid) {
			t.Error("down killed a process that is not a sandbox")
		}
	})
}
