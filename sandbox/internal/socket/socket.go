// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package socket listens on Unix sockets that only their user can write to. A client with write
// access to a socket of the sandbox controls the server behind it.
package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mode lets only the user read and write.
const mode = 0o600

// Listen listens on a Unix socket with the mode 0600. Closing the listener removes it.
//
// The file has the mode from the beginning, as Linux takes it from the socket. The umask would do
// that as well, but applies to the whole process, which makes other files meanwhile.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), mode) }), err)
	}}
	listener, err := private.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// Other kernels that run programs of Linux may not do so.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
