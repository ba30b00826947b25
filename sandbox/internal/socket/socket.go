// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package socket listens on Unix sockets that only this user can write to. A client with write access to a
// socket of the sandbox controls the server behind it.
package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mode permits only this user to read and write.
const mode = 0o600

// Listen listens on a Unix socket with mode 0600. Closing the listener removes the socket.
//
// The file has the mode from the beginning, as Linux takes it from the socket. Setting the umask would have
// the same effect, but it applies to the whole process, which may create other files at the same time.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), mode) }), err)
	}}
	listener, err := private.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// Set the mode again, for other kernels that can run Linux programs.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
