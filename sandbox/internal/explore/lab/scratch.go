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

// Scratch is the directory of one run of this command: its sandboxes are there. It is removed
// with what is in it when that has ended; if it was killed, by the next one in the same place.
type Scratch struct {
	Dir string
	// lock is held as long as this process uses it.
	lock *os.File
}

const (
	// scratchPrefix is the beginning of its name.
	scratchPrefix = "sandbox-lab-"
	// scratchMarker is the file in it that says whose it is.
	scratchMarker = ".tidekeeper-sandbox-lab"
	scratchText   = "This directory is one of sandbox explore or sandbox fuzz, and is removed with all that is in it.\n"
)

// NewScratch makes one in a directory, and removes those there that no process uses any more.
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
	// It has its marker when it is locked, so that no other process takes it for one that is left.
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

// Remove removes the directory.
func (s *Scratch) Remove() {
	_ = os.RemoveAll(s.Dir)
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// removeLeft removes the directories of killed runs.
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

// mine reports whether a directory is this user's, and no link.
func mine(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
}
