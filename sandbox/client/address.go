// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"fmt"
	"net/netip"
	"syscall"
)

var loopback = [4]byte{127, 0, 0, 1}

// FreeAddress returns a loopback address with a free port for a server that sets SO_REUSEADDR, as
// Go's servers do. The port stays reserved until release is called. Without the reservation, the
// kernel could assign the same port to another caller or to an outgoing connection.
func FreeAddress() (address string, release func() error, err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("reserve a port: %w", err)
	}
	port, err := bind(socket)
	if err != nil {
		_ = syscall.Close(socket)
		return "", nil, fmt.Errorf("reserve a port: %w", err)
	}
	release = func() error { return syscall.Close(socket) }
	return netip.AddrPortFrom(netip.AddrFrom4(loopback), port).String(), release, nil
}

// bind binds the socket to a free port without listening on it. The kernel then assigns this port
// only to processes that request it by number.
func bind(socket int) (port uint16, err error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: loopback}); err != nil {
		return 0, err
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return uint16(bound.(*syscall.SockaddrInet4).Port), nil
}
