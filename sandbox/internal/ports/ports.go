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

// Loopback is the only address on which sandboxes listen.
const Loopback = "127.0.0.1"

// Port is a reserved port. The kernel assigns it only to processes of the same user that request
// this port number with SO_REUSEPORT. The port is already reserved before such a process listens on
// it, and stays reserved while the process is restarted.
type Port struct {
	fd     int
	number int
	// lock excludes the same user's other sandboxes. Without it, the kernel would assign the same
	// port to them, too.
	lock namelock.Lock
}

// Reserve reserves the preferred port if it is free, or else any free port.
func Reserve(preferred int) (*Port, error) {
	if preferred > 0 && free(preferred) {
		if p, err := reserve(preferred); err == nil {
			return p, nil
		}
	}
	var p *Port
	var err error
	for range 10 { // Retry, because another process may have locked the port's name without having bound the port.
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

// bind binds the port without listening on it. It does not set SO_REUSEADDR: otherwise, any program
// with this option, which most servers set, could take the port before its owner listens on it.
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

// free reports whether the port is unused. A port that another sandbox of the same user has
// reserved counts as used, although this process could bind the port, too.
func free(number int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort(Loopback, strconv.Itoa(number)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Number returns the port number.
func (p *Port) Number() int { return p.number }

// Release makes the port available to other processes.
func (p *Port) Release() error { return errors.Join(unix.Close(p.fd), p.lock.Release()) }
