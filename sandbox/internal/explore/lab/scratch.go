// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Scratch is a temporary directory for the sandboxes of a process. The process removes the
// directory when it exits. If the process is killed, the next process that uses the same parent
// directory removes it.
type Scratch struct {
	Dir string
	// lock is the marker file, which stays locked as long as this process uses the directory.
	lock *os.File
}

const (
	// scratchPrefix is the common prefix of scratch directory names.
	scratchPrefix = "sandbox-lab-"
	// scratchMarker is the name of the file that identifies a directory as a scratch directory.
	scratchMarker = ".tidekeeper-sandbox-lab"
	scratchText   = "This directory is one of sandbox explore or sandbox fuzz, and is removed with all that is in it.\n"
)

// NewScratch creates a scratch directory inside the given directory, and removes scratch
// directories left there by killed processes.
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
	// Rename the marker to its final name only after locking it, so that no other process considers
	// this directory abandoned.
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

// Remove removes the directory and releases its lock.
func (s *Scratch) Remove() {
	_ = os.RemoveAll(s.Dir)
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// removeLeft removes the scratch directories that killed processes have left in the given
// directory.
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
			removeAll(dir)
		}
		_ = file.Close()
	}
}

// removeAll removes a directory. It tries again for some seconds, because components of a killed
// process may still be ending, and write files meanwhile.
func removeAll(dir string) {
	for range 50 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// mine reports whether a path is a directory (not a symbolic link) owned by the current user.
func mine(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
}
