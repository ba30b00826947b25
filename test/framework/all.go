// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"testing"
)

// TestsAll reports whether all tests are to run in full, as make test-all has it: also those
// that wait for minutes of the real clock, and those of large worlds in their full size.
func TestsAll() bool { return os.Getenv("TEST_ALL") != "" }

// OnlyInTestAll skips a test of which make test runs a shorter one, unless all are to run.
func OnlyInTestAll(t testing.TB, why string) {
	t.Helper()
	if !TestsAll() {
		t.Skip(why + ": run it with TEST_ALL=1, or make test-all")
	}
}
