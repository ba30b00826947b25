// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application listens for the programs that answer in the place of an operator's application.
package application

import (
	"fmt"
	"net"
	"os"
)

// Connections calls serve with each connection to the address in the environment variable ADDRESS, in
// a goroutine of its own, and closes the connection afterwards. It ends the process with exit code 1 if
// it cannot listen.
func Connections(serve func(net.Conn)) {
	listener, err := net.Listen("tcp", os.Getenv("ADDRESS"))
	for err == nil {
		var connection net.Conn
		if connection, err = listener.Accept(); err == nil {
			go func() {
				defer connection.Close()
				serve(connection)
			}()
		}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
