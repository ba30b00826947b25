// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namelock locks names. At most one process in a network namespace can hold the lock on a
// name.
package namelock

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Lock is this process's lock on a name. It is implemented as a Unix socket in the abstract
// namespace, which exists once per network namespace. It needs no file, and is released when the
// process exits for any reason.
type Lock struct{ fd int }

// Take locks a name. It returns an error if another process has already locked it.
func Take(name string) (Lock, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Lock{}, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@tidekeeper-sandbox-" + name}); err != nil {
		_ = unix.Close(fd)
		return Lock{}, err
	}
	return Lock{fd}, nil
}

// Held reports whether a process has locked the name.
func Held(name string) bool {
	l, err := Take(name)
	if err == nil {
		_ = l.Release()
	}
	return errors.Is(err, unix.EADDRINUSE)
}

// Release unlocks the name.
func (l Lock) Release() error { return unix.Close(l.fd) }
