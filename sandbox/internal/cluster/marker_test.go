// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMarkOfDirectory checks that the files in a directory determine whether a sandbox may use the
// directory, and whether its state is kept.
func TestMarkOfDirectory(t *testing.T) {
	ports := settings{APIServerPort: 1, EtcdPort: 2}
	for _, tc := range []struct {
		name string
		contents
		want mark
		ours bool
	}{
		{"an empty directory", contents{}, unmarked, true},
		{"a run was killed while it wrote the marker", contents{names: []string{"." + marker + ".123"}}, unmarked, true},
		{"a sandbox that is kept", contents{names: []string{marker, "etcd"}, marked: true, marker: string(kept)}, kept, true},
		{"a sandbox with an owner", contents{names: []string{marker, "etcd"}, marked: true, marker: string(owned)}, owned, true},
		{"a marker of an unknown version", contents{names: []string{marker}, marked: true, marker: "This directory is a Tidekeeper sandbox's. It is archived.\n"}, unmarked, false},
		{"an unknown marker beside the files of an earlier release", contents{names: []string{marker, "lock"}, marked: true, lock: "12\n", settings: ports, keys: true}, unmarked, false},
		{"an empty marker", contents{names: []string{marker}, marked: true}, unmarked, false},
		{"other files", contents{names: []string{"main.go"}}, unmarked, false},
		{"other files beside a temporary marker", contents{names: []string{"." + marker + ".123", "main.go"}}, unmarked, false},
		{"a sandbox of a release without markers", contents{names: []string{"lock", "sandbox.json", "pki"}, lock: "4711\n", settings: ports, keys: true}, kept, true},
		{"a lock of another program", contents{names: []string{"lock"}, lock: "4711 host\n", settings: ports, keys: true}, unmarked, false},
		{"a lock without ports", contents{names: []string{"lock", "pki"}, lock: "4711\n", keys: true}, unmarked, false},
		{"a lock with only the port of etcd", contents{names: []string{"lock", "pki"}, lock: "4711\n", settings: settings{EtcdPort: 2}, keys: true}, unmarked, false},
		{"a lock without keys", contents{names: []string{"lock", "sandbox.json"}, lock: "4711\n", settings: ports}, unmarked, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, ours := tc.judge(); got != tc.want || ours != tc.ours {
				t.Errorf("mark %q, a sandbox's: %t; want %q, %t", got, ours, tc.want, tc.ours)
			}
		})
	}
}

// TestKeepingAllows checks that a run with an owner cannot use a directory that is to be kept,
// because it would later remove the directory, unless the user discards the state.
func TestKeepingAllows(t *testing.T) {
	for _, tc := range []struct {
		keeping
		old    mark
		refuse bool
		want   mark
	}{
		{keeping{}, unmarked, false, kept},
		{keeping{}, kept, false, kept},
		{keeping{}, owned, false, kept},
		{keeping{owned: true}, unmarked, false, owned},
		{keeping{owned: true}, owned, false, owned},
		{keeping{owned: true}, kept, true, owned},
		{keeping{owned: true, fresh: true}, kept, false, owned},
		{keeping{fresh: true}, kept, false, kept},
	} {
		err := tc.allows(tc.old, "/data")
		if (err != nil) != tc.refuse || tc.mark() != tc.want {
			t.Errorf("%+v over %q: %v, mark %q; refused %t and mark %q wanted", tc.keeping, tc.old, err, tc.mark(), tc.refuse, tc.want)
		}
		if tc.refuse && err != nil && !strings.Contains(err.Error(), "--fresh") {
			t.Errorf("the refusal does not name --fresh: %v", err)
		}
	}
}

// TestAcquireDirectory checks that only one process at a time can acquire a directory, that closing
// the lock file releases the directory, and that the marker remains.
func TestAcquireDirectory(t *testing.T) {
	o := Options{Dir: Dir(filepath.Join(t.TempDir(), "data"))}
	if o.Dir.Control().Running() {
		t.Error("a sandbox runs in a directory that does not exist")
	}
	locked, err := o.acquire()
	if err != nil {
		t.Fatal(err)
	}
	if !o.Dir.Control().Running() || o.Dir.lock().pid() != os.Getpid() {
		t.Errorf("running: %t, pid %d; this process, %d, has the directory", o.Dir.Control().Running(), o.Dir.lock().pid(), os.Getpid())
	}
	var running *RunningError
	if _, err := o.acquire(); !errors.As(err, &running) || running.PID != os.Getpid() {
		t.Errorf("a second sandbox in the directory: %v", err)
	}
	if err := o.Dir.CopyTo(t.Context(), o.Dir+"-copy"); err == nil {
		t.Error("the state of a sandbox whose etcd cannot be paused was copied")
	}
	if !sameFile(locked, string(o.Dir.lock())) {
		t.Error("the lock is not the file in the directory")
	}
	if err := locked.Close(); err != nil {
		t.Fatal(err)
	}
	if o.Dir.Control().Running() {
		t.Error("a sandbox runs after the lock was closed")
	}
	if m, err := o.Dir.marker().read(); m != kept || err != nil {
		t.Errorf("the directory has the mark %q (%v)", m, err)
	}
	o.Owner = &Owner{PID: os.Getpid()}
	if _, err := o.acquire(); err == nil {
		t.Error("a sandbox that is kept was given an owner")
	}
	if m, _ := o.Dir.marker().read(); m != kept {
		t.Errorf("a refused sandbox has changed the mark to %q", m)
	}
	o.Fresh = true
	locked, err = o.acquire()
	if err != nil {
		t.Fatal(err)
	}
	locked.Close()
	if m, err := o.Dir.marker().read(); m != owned || err != nil {
		t.Errorf("a fresh sandbox with an owner has the mark %q (%v)", m, err)
	}
}

// TestRemoveKeepsFilesOfOthers checks that only a sandbox's own files are removed from its
// directory, and that a directory with other files remains.
func TestRemoveKeepsFilesOfOthers(t *testing.T) {
	dir := Dir(t.TempDir())
	for _, name := range append([]string{"mine"}, append(stateFiles, processFiles...)...) {
		if err := os.WriteFile(dir.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.clear(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"etcd": false, "sandbox.json": false, marker: true, "lock": true, "mine": true} {
		if _, err := os.Stat(dir.path(name)); (err == nil) != want {
			t.Errorf("after the state was cleared, %s is there: %t", name, err == nil)
		}
	}
	dir.remove()
	entries, err := os.ReadDir(string(dir))
	if err != nil || len(entries) != 1 || entries[0].Name() != "mine" {
		t.Errorf("after all was removed: %v, %v", entries, err)
	}
}

// TestKeepOthersOut checks that other users lose write permission on a data directory, and that a
// directory that all users share is rejected.
func TestKeepOthersOut(t *testing.T) {
	for _, tc := range []struct {
		mode, want os.FileMode
		refuse     bool
	}{{0o700, 0o700, false}, {0o755, 0o755, false}, {0o777, 0o755, false}, {0o770, 0o750, false}, {0o777 | os.ModeSticky, 0o777, true}} {
		dir := t.TempDir()
		if err := os.Chmod(dir, tc.mode); err != nil {
			t.Fatal(err)
		}
		err := keepOthersOut(dir)
		info, statErr := os.Stat(dir)
		if statErr != nil {
			t.Fatal(statErr)
		}
		if (err != nil) != tc.refuse || info.Mode().Perm() != tc.want {
			t.Errorf("mode %v: %v, and then %v; want %v", tc.mode, err, info.Mode().Perm(), tc.want)
		}
	}
}
