// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// marker is the file by which a directory is known as a sandbox's. No other program has a file of
// that name, as many have a file named lock.
const marker = ".tidekeeper-sandbox"

// mark is the text of the marker.
type mark string

const (
	// unmarked: there is no sandbox in the directory yet.
	unmarked mark = ""
	// kept: the state may be needed again. The text is a stored format: directories of earlier
	// releases have it.
	kept mark = "This directory is a Tidekeeper sandbox's. It is kept until somebody removes it.\n"
	// owned: the directory is removed when the owner of the sandbox has ended.
	owned mark = "This directory is a Tidekeeper sandbox's. It is removed with the process that --owner named.\n"
)

// keeping is how a run treats the state in the directory.
type keeping struct {
	// owned: the directory is removed with the owner.
	owned bool
	// fresh: the state of earlier runs is removed first.
	fresh bool
}

func (k keeping) mark() mark {
	if k.owned {
		return owned
	}
	return kept
}

// allows returns an error if a run must not take a directory with that mark: a sandbox that is kept
// does not become a sandbox that is removed, unless the user gives up its state.
func (k keeping) allows(old mark, dir Dir) error {
	if old == kept && k.owned && !k.fresh {
		return fmt.Errorf("--owner would remove the sandbox in %s, which was made to be kept: give another --data-dir, or forget what is in it with --fresh", dir)
	}
	return nil
}

// contents are the files of a directory that say whether it is a sandbox's.
type contents struct {
	// names are the names of all files.
	names []string
	// marker is the text of the marker, and marked whether it exists.
	marker string
	marked bool
	// lock is the text of the lock file, and settings are the ports of the last run.
	lock     string
	settings settings
	// keys: there is a directory of keys.
	keys bool
}

// judge returns the mark of a directory, and false for a directory with files that are not a
// sandbox's.
func (c contents) judge() (_ mark, ours bool) {
	if !slices.ContainsFunc(c.names, func(name string) bool { return !isTemporaryMarker(name) }) {
		return unmarked, true
	}
	switch m := mark(c.marker); {
	case c.marked && (m == kept || m == owned):
		return m, true
	case c.marked:
		return unmarked, false
	case c.isOfEarlierRelease():
		return kept, true
	}
	return unmarked, false
}

// isTemporaryMarker reports whether a file is a marker that another process is about to put in
// place, or was, when it was killed.
func isTemporaryMarker(name string) bool { return strings.HasPrefix(name, "."+marker+".") }

var pidLine = regexp.MustCompile(`^[1-9][0-9]*\n$`)

// isOfEarlierRelease reports whether the directory is that of a sandbox from before there were
// markers: it has a lock, ports and keys.
func (c contents) isOfEarlierRelease() bool {
	return pidLine.MatchString(c.lock) && c.settings.APIServerPort != 0 && c.settings.EtcdPort != 0 && c.keys
}

// markerFile is the marker of a directory.
type markerFile struct{ dir Dir }

// write marks the directory.
func (f markerFile) write(m, old mark) error {
	if m == old {
		return nil
	}
	if err := writeSecret(f.dir.path(marker), []byte(m)); err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	return nil
}

// read returns the mark of the directory, and refuses a directory with files that are not a
// sandbox's: it might be given by mistake.
func (f markerFile) read() (mark, error) {
	entries, err := os.ReadDir(string(f.dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unmarked, nil
	case errors.Is(err, syscall.ENOTDIR):
		return unmarked, fmt.Errorf("the data directory %s is a file: give another --data-dir", f.dir)
	case err != nil:
		return unmarked, fmt.Errorf("read the data directory: %w", err)
	}
	var c contents
	for _, entry := range entries {
		c.names = append(c.names, entry.Name())
	}
	text, err := os.ReadFile(f.dir.path(marker))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unmarked, fmt.Errorf("read the data directory: %w", err)
	}
	c.marker, c.marked = string(text), err == nil
	if !c.marked {
		lock, _ := os.ReadFile(string(f.dir.lock()))
		c.lock = string(lock)
		if c.settings, err = f.dir.settings().load(); err != nil {
			c.settings = settings{}
		}
		info, err := os.Stat(f.dir.credentials().pki)
		c.keys = err == nil && info.IsDir()
	}
	m, ours := c.judge()
	if !ours {
		return unmarked, fmt.Errorf("the data directory %s has files in it that are not a sandbox's: give another --data-dir", f.dir)
	}
	return m, nil
}

// keepOthersOut takes from other users the right to write to the directory: with its socket or its
// keys, a user is the sandbox's administrator.
func keepOthersOut(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	mode := info.Mode()
	if mode.Perm()&0o022 == 0 {
		return nil
	}
	if mode&fs.ModeSticky != 0 {
		return fmt.Errorf("the data directory %s is shared by all users: give a directory in it as --data-dir", dir)
	}
	if err := os.Chmod(dir, mode.Perm()&^0o022); err != nil {
		return fmt.Errorf("others can write to the data directory: %w", err)
	}
	return nil
}
