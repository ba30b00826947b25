// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Scratch is the temporary directory of a process of this command, for its sandboxes. The
// process removes the directory when it exits. If the process was killed, the next process that
// uses the same parent directory does.
type Scratch struct {
	Dir string
	// lock is the marker file, locked as long as this process uses the directory.
	lock *os.File
}

const (
	// scratchPrefix is the prefix of the name of a scratch directory.
	scratchPrefix = "sandbox-lab-"
	// scratchMarker is the file by which a scratch directory is recognized.
	scratchMarker = ".tidekeeper-sandbox-lab"
	scratchText   = "This directory is one of sandbox explore or sandbox fuzz, and is removed with all that is in it.\n"
)

// NewScratch creates a scratch directory in a directory, and removes scratch directories there
// that killed processes have left behind.
func NewScratch(in string) (_ *Scratch, err error) {
	removeLeft(in)
	s := &Scratch{}
	if s.Dir, err = os.MkdirTemp(in, scratchPrefix); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Remove()
		}
	}()
	// The marker gets its name only after it is locked, so that no other process takes this
	// directory for an abandoned directory.
	file := filepath.Join(s.Dir, scratchMarker)
	if s.lock, err = os.OpenFile(file+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	_, err = s.lock.WriteString(scratchText)
	return s, errors.Join(err, os.Rename(file+".new", file))
}

// Remove removes the directory, and releases its lock.
func (s *Scratch) Remove() {
	_ = os.RemoveAll(s.Dir)
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// removeLeft removes the scratch directories of killed processes.
func removeLeft(in string) {
	found, _ := filepath.Glob(filepath.Join(in, scratchPrefix+"*"))
	for _, dir := range found {
		if !mine(dir) {
			continue
		}
		file, err := os.OpenFile(filepath.Join(dir, scratchMarker), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = file.Close()
	}
}

// mine reports whether a path is a directory of this user, and not a symbolic link.
func mine(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
}
