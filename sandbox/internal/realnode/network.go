// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// dialTimeout is the timeout for connecting to an address on this machine.
const dialTimeout = 10 * time.Second

// setUpLoopback brings up the loopback interface of this network namespace, and adds addresses to
// it.
func setUpLoopback(addresses ...netip.Addr) error {
	if err := incluster.SetUpLoopback(); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i, address := range addresses {
		if err := addAddress(fd, fmt.Sprintf("lo:%d", i+1), address); err != nil {
			return fmt.Errorf("the address %s: %w", address, err)
		}
	}
	return nil
}

// addAddress adds an address to the loopback interface, with a label such as lo:1. The parameter fd
// is the file descriptor of an open socket.
func addAddress(fd int, label string, address netip.Addr) error {
	for _, step := range []struct {
		ioctl uint
		value net.IP
	}{
		{unix.SIOCSIFADDR, address.AsSlice()},
		// Set the netmask of a single address. Otherwise, the kernel would treat all addresses of
		// the class A, B or C network as local.
		{unix.SIOCSIFNETMASK, net.IPv4bcast.To4()},
	} {
		request, err := unix.NewIfreq(label)
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(step.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.ioctl, request); err != nil {
			return err
		}
	}
	return nil
}

// dialOutside connects to an address in another network namespace.
func dialOutside(ctx context.Context, namespace *os.File, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	done := make(chan result, 1)
	go func() {
		// Never unlock the thread, so that it ends with the goroutine and no other code runs in the
		// other namespace. The connection stays in that namespace.
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp4", address)
		done <- result{c, err}
	}()
	r := <-done
	return r.connection, r.err
}
