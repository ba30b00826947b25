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
	for i, address := range addresses {
		// With its own prefix alone. Otherwise, all addresses of a network would be local.
		if err := incluster.AddAddress(fmt.Sprintf("lo:%d", i+1), netip.PrefixFrom(address, address.BitLen())); err != nil {
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
