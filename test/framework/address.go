// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// FreeAddress returns a loopback address for a server that sets SO_REUSEADDR,
// as Go's do. It is reserved until the test ends: a port that was only tried and
// given back may be the next one's too, or that of a connection.
func FreeAddress(t testing.TB) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal("reserving a port: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Close(socket); err != nil {
			t.Error("giving a port back: ", err)
		}
	})
	port, err := bind(socket)
	if err != nil {
		t.Fatal("reserving a port: ", err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(loopback), port).String()
}

var loopback = [4]byte{127, 0, 0, 1}

// bind binds the socket to a free port without listening, which keeps the
// kernel from giving the port to anybody who does not ask for it by number.
func bind(socket int) (port uint16, err error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: loopback}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return uint16(address.(*unix.SockaddrInet4).Port), nil
}
