// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback has servers for tests.
package loopback

import (
	"net"
	"testing"
)

// Listen starts a server on the loopback interface that handles each connection in a function, until the
// test has ended. It returns the address of the server.
func Listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go handle(connection)
		}
	}()
	return listener.Addr().String()
}
