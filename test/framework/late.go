// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// late reports whether tests must not begin any more: make test-all WITHIN=… sets the environment
// variable TIDEKEEPER_TESTS_UNTIL to a Unix time, in seconds, so that a run on a slow machine ends with
// a summary and not by being killed.
func late(now time.Time) bool {
	until, err := strconv.ParseInt(os.Getenv("TIDEKEEPER_TESTS_UNTIL"), 10, 64)
	return err == nil && now.Unix() >= until
}

// begun holds the names of tests that have begun in time.
var begun sync.Map

// BeginInTime skips a test that has not called it before, if it is [late]. LaunchManager calls it.
func BeginInTime(t testing.TB) {
	t.Helper()
	if _, again := begun.Load(t.Name()); again {
		return
	}
	if late(time.Now()) {
		t.Skip("SKIPPED: it could not begin in time: the machine is too slow, or its caches were empty")
	}
	begun.Store(t.Name(), true)
}
