// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dashboard

import (
	"os"

	"golang.org/x/sys/unix"
)

// newEnterKey returns a function that reports whether Enter was pressed since the last call. It never
// waits, and reads nothing in the background of a shell, which would stop the process.
func newEnterKey(terminal *os.File) (pressed func() bool) {
	fd := int(terminal.Fd())
	line := make([]byte, 4096)
	return func() bool {
		// Only a terminal that controls this process has a group in its foreground.
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group != unix.Getpgrp() {
			return false
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a file descriptor is a small number
		if n, err := unix.Poll(ready, 0); err != nil || n == 0 || ready[0].Revents&unix.POLLIN == 0 {
			return false
		}
		n, err := unix.Read(fd, line)
		return err == nil && n > 0
	}
}
