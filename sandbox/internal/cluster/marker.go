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

// marker is the name of the file that identifies a sandbox's data directory. A common name such as
// "lock" could belong to another program.
const marker = ".tidekeeper-sandbox"

// mark is the content of a marker file. It records whether the data directory is kept, or is
// removed when the sandbox's owner (the process named by --owner) exits.
type mark string

const (
	// unmarked means that the directory does not yet belong to a sandbox.
	unmarked mark = ""
	// kept means that the state is kept when the sandbox stops. The string must not change, because
	// the marker files of earlier versions contain it.
	kept mark = "This directory is a Tidekeeper sandbox's. It is kept until somebody removes it.\n"
	// owned means that the directory is removed when the sandbox's owner process has exited.
	owned mark = "This directory is a Tidekeeper sandbox's. It is removed with the process that --owner named.\n"
)

// keeping describes whether a run of a sandbox keeps the data directory and the state of earlier
// runs.
type keeping struct {
	// owned is set if the directory is removed when the owner process exits.
	owned bool
	// fresh is set if the state of earlier runs is removed before the sandbox starts.
	fresh bool
}

func (k keeping) mark() mark {
	if k.owned {
		return owned
	}
	return kept
}

// allows returns an error if a run of a sandbox must not use a data directory with the given mark.
// A directory that is marked as kept must not be removed together with the owner process, unless
// the user has discarded the state of earlier runs with --fresh.
func (k keeping) allows(old mark, dir Dir) error {
	if old == kept && k.owned && !k.fresh {
		return fmt.Errorf("--owner would remove the sandbox in %s, which was made to be kept: give another --data-dir, or forget what is in it with --fresh", dir)
	}
	return nil
}

// contents describes the files in a directory, from which judge concludes whether the directory
// belongs to a sandbox.
type contents struct {
	// names lists the names of all files in the directory.
	names []string
	// marker is the content of the marker file; marked is set if the file exists.
	marker string
	marked bool
	// lock is the content of the lock file. settings is the content of the settings file: the ports
	// of the last run.
	lock     string
	settings settings
	// keys is set if the directory contains the directory of certificates and keys.
	keys bool
}

// judge returns the mark of a directory. It sets "ours" to false if the directory contains files
// that do not belong to a sandbox.
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

// isTemporaryMarker reports whether a file is a temporary file for the atomic replacement of a
// marker. Another process may be about to rename the file, or may have been killed before that.
func isTemporaryMarker(name string) bool { return strings.HasPrefix(name, "."+marker+".") }

var pidLine = regexp.MustCompile(`^[1-9][0-9]*\n$`)

// isOfEarlierRelease reports whether the directory was created by a version of the sandbox without
// markers. Such a directory has a lock file, ports and keys.
func (c contents) isOfEarlierRelease() bool {
	return pidLine.MatchString(c.lock) && c.settings.APIServerPort != 0 && c.settings.EtcdPort != 0 && c.keys
}

// markerFile reads and writes a directory's marker.
type markerFile struct{ dir Dir }

// write writes the mark m to the directory, unless the old mark is the same.
func (f markerFile) write(m, old mark) error {
	if m == old {
		return nil
	}
	if err := writeSecret(f.dir.path(marker), []byte(m)); err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	return nil
}

// read returns the mark of the directory. It returns an error if the directory contains files that
// do not belong to a sandbox, because the user may have named the directory by mistake.
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

// keepOthersOut removes other users' write permission on the directory, because anyone with access
// to the socket or the keys in it is an administrator of the sandbox. It rejects a sticky directory
// such as /tmp.
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
