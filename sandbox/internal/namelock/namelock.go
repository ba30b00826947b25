// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namelock locks names, each for at most one process of the machine.
package namelock

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Lock is a name that this process has locked. It is a socket in the abstract namespace, which belongs to
// a network namespace: it needs no file, and is released when its process ends in any way.
type Lock struct{ fd int }

// Take locks a name, unless another process has it.
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
