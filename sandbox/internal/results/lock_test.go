// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two runs do not share a directory, and the second says who has it.
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

// What is run from the directory is nothing that another user has put there.
func TestLockOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); err == nil || !strings.Contains(err.Error(), "is one that all users can write to") {
		t.Errorf("it was locked: %v", err)
	}
	if os.Geteuid() != 0 {
		return // Only root can give a directory away.
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
