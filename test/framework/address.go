// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// FreeAddress returns a loopback address for a server, reserved until the test
// ends; see [sandbox.FreeAddress].
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, release, err := sandbox.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error("release a port: ", err)
		}
	})
	return address
}
