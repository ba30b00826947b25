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

// marker is the file that says that a directory is a sandbox's. No other program
// has one of that name, as many have a file named lock.
const marker = ".tidekeeper-sandbox"

// mark is what the marker says.
type mark string

const (
	// unmarked: there is no sandbox in the directory yet.
	unmarked mark = ""
	// kept: its state may be needed again. The text is a stored format: directories of
	// earlier releases have it.
	kept mark = "This directory is a Tidekeeper sandbox's. It is kept until somebody removes it.\n"
	// owned: it goes with the process that the sandbox was made for.
	owned mark = "This directory is a Tidekeeper sandbox's. It is removed with the process that --owner named.\n"
)

// keeping is what a run means to do with what is in the directory.
type keeping struct {
	// owned: all of it is removed with the owner.
	owned bool
	// fresh: what is there is forgotten.
	fresh bool
}

func (k keeping) mark() mark {
	if k.owned {
		return owned
	}
	return kept
}

// write marks the directory.
func (d Dir) write(m, old mark) error {
	if m == old {
		return nil
	}
	if err := writeSecret(d.path(marker), []byte(m)); err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	return nil
}

// mark returns what the directory is, and refuses one with files in it that are
// not a sandbox's: it might be given by mistake.
func (d Dir) mark() (mark, error) {
	entries, err := os.ReadDir(string(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unmarked, nil
	case errors.Is(err, syscall.ENOTDIR):
		return unmarked, fmt.Errorf("the data directory %s is a file: give another --data-dir", d)
	case err != nil:
		return unmarked, fmt.Errorf("read the data directory: %w", err)
	}
	// Another process may be about to mark it.
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), "."+marker+".") })
	if len(entries) == 0 {
		return unmarked, nil
	}
	text, err := os.ReadFile(d.path(marker))
	switch m := mark(text); {
	case err == nil && (m == kept || m == owned):
		return m, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return unmarked, fmt.Errorf("read the data directory: %w", err)
	case errors.Is(err, fs.ErrNotExist) && d.isOfEarlierRelease():
		return kept, nil
	}
	return unmarked, fmt.Errorf("the data directory %s has files in it that are not a sandbox's: give another --data-dir", d)
}

var pidLine = regexp.MustCompile(`^[1-9][0-9]*\n$`)

// isOfEarlierRelease reports whether the directory is that of a sandbox from
// before there were markers: it has its lock, its settings and its keys.
func (d Dir) isOfEarlierRelease() bool {
	lock, err := os.ReadFile(d.lock())
	if err != nil || !pidLine.Match(lock) {
		return false
	}
	if s, err := d.loadSettings(); err != nil || s.APIServerPort == 0 || s.EtcdPort == 0 {
		return false
	}
	info, err := os.Stat(d.pki())
	return err == nil && info.IsDir()
}

// take writes into the locked directory what it is, and whose. A sandbox that is
// kept does not become one that is removed.
func (d Dir) take(lock *os.File, keeping keeping) error {
	old, err := d.mark()
	if err != nil {
		return err
	}
	if old == kept && keeping.owned && !keeping.fresh {
		return fmt.Errorf("--owner would remove the sandbox in %s, which was made to be kept: give another --data-dir, or forget what is in it with --fresh", d)
	}
	if err := d.write(keeping.mark(), old); err != nil {
		return err
	}
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	if _, err := fmt.Fprintf(lock, "%d\n", os.Getpid()); err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	return nil
}

// keepOthersOut takes from other users the right to write to the directory: with its
// socket or its keys, a user is the sandbox's administrator.
func (d Dir) keepOthersOut() error {
	info, err := os.Stat(string(d))
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	mode := info.Mode()
	if mode.Perm()&0o022 == 0 {
		return nil
	}
	if mode&fs.ModeSticky != 0 {
		return fmt.Errorf("the data directory %s is shared by all users: give a directory in it as --data-dir", d)
	}
	if err := os.Chmod(string(d), mode.Perm()&^0o022); err != nil {
		return fmt.Errorf("others can write to the data directory: %w", err)
	}
	return nil
}
