// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLock checks that a directory can be locked only once, and that the error names the process
// that holds the lock.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: process %d plays there", dir, os.Getpid())) {
		t.Errorf("it was locked twice: %v", err)
	}
	unlock()
	again, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestLockIsNoLink checks that a link in place of the lock file is not followed, because the file
// that it names would be overwritten.
func TestLockIsNoLink(t *testing.T) {
	dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.WriteFile(precious, []byte("text"), 0o600), os.Symlink(precious, filepath.Join(dir, lockFile))); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil {
		t.Error("it was locked")
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "text" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestLockOfOthers checks that a directory is rejected if other users own it or can write to it.
func TestLockOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "is one that all users can write to") {
		t.Errorf("it was locked: %v", err)
	}
	if os.Geteuid() != 0 {
		return // Only root can change a directory's owner.
	}
	const nobody = 65534
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "belongs to another user (65534)") {
		t.Errorf("it was locked: %v", err)
	}
}
