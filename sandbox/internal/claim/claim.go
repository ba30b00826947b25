// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim reserves names, each for at most one process of the machine.
package claim

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Claim is a name that this process has reserved. It is a socket in the abstract namespace, which belongs to
// a network namespace: it needs no file, and is released when its process ends in any way.
type Claim struct{ fd int }

// Take reserves a name, unless another process has it.
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

// Release releases the name.
func (c Claim) Release() error { return unix.Close(c.fd) }
