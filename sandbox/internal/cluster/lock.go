// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is the path of the file that a sandbox process locks and to which it writes its process
// ID. The lock is released when the file is closed or the process exits for any reason.
type lockFile string

// errLocked means that another process has locked the data directory.
var errLocked = errors.New("another process has the lock")

// take creates the lock file if necessary, and locks it until the returned file is closed. It
// returns errLocked if another process holds the lock.
func (l lockFile) take() (*os.File, error) {
	f, err := os.OpenFile(string(l), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Try repeatedly for 200 milliseconds, because a process that only checks the lock also holds
	// it, for some microseconds.
	for range 20 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, err
}

// held reports whether any process holds the lock.
func (l lockFile) held() bool {
	f, err := os.Open(string(l))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// pid returns the ID of the process that holds the lock or was the last to hold it, or 0 if it is
// unknown.
func (l lockFile) pid() int {
	buf, _ := os.ReadFile(string(l))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(buf)))
	return pid
}

// writePID writes this process's ID to the locked file.
func writePID(locked *os.File) error {
	if err := locked.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(locked, "%d\n", os.Getpid())
	return err
}

// sameFile reports whether the path `name` still refers to the open file f. Another process may
// have removed or replaced the file.
func sameFile(f *os.File, name string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(open, named)
}

// RunningError reports that another sandbox is already running in the directory.
type RunningError struct {
	Dir Dir
	PID int
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("a sandbox already runs in %s (pid %d): stop it with 'sandbox down --data-dir %s', or give this one another --data-dir", e.Dir, e.PID, e.Dir)
}

// acquire creates the data directory if necessary, and locks it for this process until the returned
// file is closed.
func (o Options) acquire() (*os.File, error) {
	old, err := o.Dir.marker().read()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(o.Dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	if err := keepOthersOut(string(o.Dir)); err != nil {
		return nil, err
	}
	if old == unmarked {
		// Write the marker before any other file. A process that found files but no marker would
		// conclude that the directory does not belong to a sandbox.
		if err := o.Dir.marker().write(o.keeping().mark(), old); err != nil {
			return nil, err
		}
	}
	locked, err := o.Dir.lock().take()
	// Only a sandbox answers. Without an answer, try for two seconds, because a command that only
	// checks the directory also holds the lock, and may be stalled on a busy machine.
	for range 9 {
		if !errors.Is(err, errLocked) || o.Dir.Control().answers() {
			break
		}
		locked, err = o.Dir.lock().take()
	}
	switch {
	case errors.Is(err, errLocked):
		return nil, &RunningError{Dir: o.Dir, PID: o.Dir.Control().pid()}
	case err != nil:
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := o.mark(locked); err != nil {
		locked.Close()
		return nil, err
	}
	return locked, nil
}

// mark writes the marker, which records whether the data directory is kept when the sandbox stops,
// and writes this process's ID to the locked file.
func (o Options) mark(locked *os.File) error {
	// Read the marker again, because the previous holder of the lock may have changed it.
	old, err := o.Dir.marker().read()
	if err != nil {
		return err
	}
	if err := o.keeping().allows(old, o.Dir); err != nil {
		return err
	}
	if err := o.Dir.marker().write(o.keeping().mark(), old); err != nil {
		return err
	}
	if err := writePID(locked); err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	return nil
}
