// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package socket listens on Unix sockets that only this user can write to. Write access to a
// sandbox's socket gives a client control over the server behind it.
package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mode permits only this user to read and write the socket.
const mode = 0o600

// Listen listens on a Unix socket with mode 0600. Closing the listener removes the socket.
//
// The socket file has this mode from its creation, because Linux copies the mode of the socket to
// the file. Setting the umask would have the same effect, but the umask applies to the entire
// process, which may create other files at the same time.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), mode) }), err)
	}}
	listener, err := private.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// Set the mode again, for non-Linux kernels that can run Linux programs.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
