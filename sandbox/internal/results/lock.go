// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile is the name of a file in each results directory. A run locks this file while it uses the
// directory.
const lockFile = ".sandbox-lock"

// Lock creates a results directory if necessary, and locks it until `unlock` is called or this
// process terminates, even if the process is killed.
func Lock(dir string) (unlock func(), _ error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	if err := own(dir); err != nil {
		return nil, fmt.Errorf("--dir %s %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("--dir: lock %s: %w", file.Name(), err)
		}
		pid, _ := io.ReadAll(file)
		return nil, fmt.Errorf("--dir %s: process %s plays there: wait until it has ended, or give another --dir", dir, strings.TrimSpace(string(pid)))
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--dir: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// own returns an error if other users could write to a directory, because such users could replace
// the programs that are run in the directory.
func own(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	switch owner := info.Sys().(*syscall.Stat_t).Uid; {
	case owner != uint32(os.Geteuid()):
		return fmt.Errorf("belongs to another user (%d), who could change what is run there: give another", owner)
	case info.Mode().Perm()&0o002 != 0:
		return errors.New("is one that all users can write to, who could change what is run there: give another")
	}
	return nil
}
