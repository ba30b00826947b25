// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCopyAll checks that a copy of a directory has the same files, with the same contents, sizes and
// permissions, and that a hole in a file takes no space.
func TestCopyAll(t *testing.T) {
	const hole = 32 << 20
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := os.MkdirAll(filepath.Join(from, "below", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][]int64{"nothing": nil, "data": {0}, "below/hole": {hole}, "data and hole and data": {0, hole}} {
		file, err := os.OpenFile(filepath.Join(from, name), os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range parts {
			if _, err := file.WriteAt([]byte("words"), at); err != nil {
				t.Fatal(err)
			}
		}
		if name != "nothing" {
			// The file ends with a hole, too.
			if err := file.Truncate(2 * hole); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyAll(from, to); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		copied := to + path[len(from):]
		was, is := stat(t, path), stat(t, copied)
		if was.Mode() != is.Mode() || entry.Type().IsRegular() && was.Size() != is.Size() {
			t.Errorf("%s: %v with %d bytes became %v with %d", path, was.Mode(), was.Size(), is.Mode(), is.Size())
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		if !bytes.Equal(read(t, path), read(t, copied)) {
			t.Errorf("%s has other contents", path)
		}
		if blocks := is.Sys().(*syscall.Stat_t).Blocks * 512; blocks > 1<<20 {
			t.Errorf("%s takes %d bytes", path, blocks)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := copyAll(from, to); err == nil {
		t.Error("a copy was overwritten")
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
