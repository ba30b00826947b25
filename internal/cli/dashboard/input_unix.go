// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dashboard

import (
	"os"

	"golang.org/x/sys/unix"
)

// newEnterKey returns a function that reports whether Enter was pressed since the last call. The
// function never blocks. It does not read from the terminal while the process is in the background,
// because the kernel would stop the process.
func newEnterKey(terminal *os.File) (pressed func() bool) {
	fd := int(terminal.Fd())
	line := make([]byte, 4096)
	return func() bool {
		// The ioctl fails if the terminal is not the controlling terminal of this process. Reading
		// is then safe.
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
			return false
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // A file descriptor fits into an int32.
		if n, err := unix.Poll(ready, 0); err != nil || n == 0 || ready[0].Revents&unix.POLLIN == 0 {
			return false
		}
		n, err := unix.Read(fd, line)
		return err == nil && n > 0
	}
}
