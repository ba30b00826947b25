// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestScratch checks that a new process removes the scratch directories of killed processes, but no
// other directories.
func TestScratch(t *testing.T) {
	in := t.TempDir()
	begin := func() *Scratch {
		t.Helper()
		s, err := NewScratch(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(s.Dir, "sandbox-1"), 0o700); err != nil {
			t.Fatal(err)
		}
		return s
	}
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	}
	users := filepath.Join(in, scratchPrefix+"results")
	if err := os.Mkdir(users, 0o700); err != nil {
		t.Fatal(err)
	}
	killed, runs := begin(), begin()
	if err := killed.lock.Close(); err != nil { // The lock is released as if the process had been killed.
		t.Fatal(err)
	}
	// Another directory with a marker, which a link in this one names.
	elsewhere, link := t.TempDir(), filepath.Join(in, scratchPrefix+"link")
	if err := errors.Join(os.WriteFile(filepath.Join(elsewhere, scratchMarker), nil, 0o600), os.Symlink(elsewhere, link)); err != nil {
		t.Fatal(err)
	}
	next := begin()
	for _, tc := range []struct {
		what, dir string
		want      bool
	}{
		{"that of a run that was killed", killed.Dir, false}, {"that of one that runs", runs.Dir, true}, {"its own", next.Dir, true}, {"a user's", users, true}, {"a link", link, true},
	} {
		if got := there(tc.dir); got != tc.want {
			t.Errorf("%s is there: %t, want %t", tc.what, got, tc.want)
		}
	}
	if next.Remove(); there(next.Dir) || !there(runs.Dir) {
		t.Error("removed is another than its own")
	}
}
