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

// marker is the name of the file that identifies a directory as a sandbox's. A common name such as lock could
// belong to another program.
const marker = ".tidekeeper-sandbox"

// mark is the content of the marker.
type mark string

const (
	// unmarked means that the directory does not contain a sandbox yet.
	unmarked mark = ""
	// kept means that the state may be needed again. The text is a stored format: directories of earlier
	// releases have it.
	kept mark = "This directory is a Tidekeeper sandbox's. It is kept until somebody removes it.\n"
	// owned means that the directory is removed when the owner of the sandbox has ended.
	owned mark = "This directory is a Tidekeeper sandbox's. It is removed with the process that --owner named.\n"
)

// keeping describes how a run treats the state in the directory.
type keeping struct {
	// owned is set if the directory is removed together with the owner.
	owned bool
	// fresh is set if the state of earlier runs is removed first.
	fresh bool
}

func (k keeping) mark() mark {
	if k.owned {
		return owned
	}
	return kept
}

// allows returns an error if a run must not use a directory with the given mark: a directory that is kept
// does not become one that is removed, unless the user discards its state.
func (k keeping) allows(old mark, dir Dir) error {
	if old == kept && k.owned && !k.fresh {
		return fmt.Errorf("--owner would remove the sandbox in %s, which was made to be kept: give another --data-dir, or forget what is in it with --fresh", dir)
	}
	return nil
}

// contents describes the files in a directory that show whether it belongs to a sandbox.
type contents struct {
	// names are the names of all files.
	names []string
	// marker is the content of the marker, and marked is set if it exists.
	marker string
	marked bool
	// lock is the content of the lock file, and settings has the ports of the last run.
	lock     string
	settings settings
	// keys is set if there is a directory of keys.
	keys bool
}

// judge returns the mark of a directory; false if the directory contains files that are not a sandbox's.
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

// isTemporaryMarker reports whether a file is a marker that another process has not renamed yet, or left
// behind when it was killed.
func isTemporaryMarker(name string) bool { return strings.HasPrefix(name, "."+marker+".") }

var pidLine = regexp.MustCompile(`^[1-9][0-9]*\n$`)

// isOfEarlierRelease reports whether the directory is from a release without markers: it has a lock, ports
// and keys.
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

// read returns the mark of the directory. It refuses a directory that contains other files, as the directory
// may have been named by mistake.
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

// keepOthersOut removes write permission on the directory for other users: users with access to its socket or
// keys are administrators of the sandbox.
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
