// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim gives a name to a single process of the machine at a time.
package claim

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Claim is a name that this process has. It is that of a socket in the abstract
// namespace, which is the network's: it needs no file, and is given back when its process
// ends, however it does.
type Claim struct{ fd int }

// Take takes a name, unless a process has it.
func Take(name string) (Claim, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Claim{}, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@tidekeeper-sandbox-" + name}); err != nil {
		_ = unix.Close(fd)
		return Claim{}, err
	}
	return Claim{fd}, nil
}

// Taken reports whether a process has the name.
func Taken(name string) bool {
	c, err := Take(name)
	if err == nil {
		_ = c.Release()
	}
	return errors.Is(err, unix.EADDRINUSE)
}

// Release gives the name back.
func (c Claim) Release() error { return unix.Close(c.fd) }
