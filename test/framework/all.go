// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"testing"
)

// TestsAll reports whether every test must run in full, as in make test-all. This includes tests
// that wait for minutes of real time, and tests of large clusters at their full size.
func TestsAll() bool { return os.Getenv("TEST_ALL") != "" }

// OnlyInTestAll skips a test unless [TestsAll] is true. `why` names the shorter test that make test
// runs instead.
func OnlyInTestAll(t testing.TB, why string) {
	t.Helper()
	if !TestsAll() {
		t.Skip(why + ": run it with TEST_ALL=1, or make test-all")
	}
}
