// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports reserves TCP ports of the loopback interface.
package ports

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/internal/namelock"
)

// Loopback is the only address on which a sandbox listens.
const Loopback = "127.0.0.1"

// Port is a reserved port. While it is reserved, the kernel gives it only to processes of the same user that
// request exactly this port with SO_REUSEPORT. It stays reserved before such a process listens on it, and
// while that process is restarted.
type Port struct {
	fd     int
	number int
	// lock keeps the port from other sandboxes of the same user, with which the kernel would let it be
	// shared.
	lock namelock.Lock
}

// Reserve reserves the preferred port if it is free, else any free port.
func Reserve(preferred int) (*Port, error) {
	if preferred > 0 && free(preferred) {
		if p, err := reserve(preferred); err == nil {
			return p, nil
		}
	}
	var p *Port
	var err error
	for range 10 { // Another process may have locked the name of the port without having bound it.
		if p, err = reserve(0); err == nil {
			break
		}
	}
	return p, err
}

func reserve(number int) (*Port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	p := &Port{fd: fd}
	if err := p.bind(number); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	if p.lock, err = namelock.Take(fmt.Sprintf("port-%d", p.number)); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("reserve port %d: %w", p.number, err)
	}
	return p, nil
}

// bind does not set SO_REUSEADDR on purpose: programs that set it, as most do, could otherwise take the port
// before its owner listens on it.
func (p *Port) bind(number int) error {
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(p.fd, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	addr, err := unix.Getsockname(p.fd)
	if err != nil {
		return err
	}
	p.number = addr.(*unix.SockaddrInet4).Port
	return nil
}

// free reports whether no process uses the port. It also detects another sandbox of the same user, whose
// reservation would not prevent a second one.
func free(number int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort(Loopback, strconv.Itoa(number)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Number returns the port number.
func (p *Port) Number() int { return p.number }

// Release gives the port back.
func (p *Port) Release() error { return errors.Join(unix.Close(p.fd), p.lock.Release()) }
