// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"net"
	"testing"
)

// An address is nobody else's from the moment it is given until the test ends,
// and a server can have it, twice in a row.
func TestFreeAddress(t *testing.T) {
	// So many that a port given back too early comes twice, and few enough for the
	// smallest range of ports and limit of files.
	const many = 500
	seen := map[string]bool{}
	for range many {
		address := FreeAddress(t)
		if seen[address] {
			t.Fatalf("%s is given twice", address)
		}
		seen[address] = true
	}
	for address := range seen {
		for range 2 {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			other, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if seen[other.Addr().String()] {
				t.Errorf("%s is given to a server that asks for any", other.Addr())
			}
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
