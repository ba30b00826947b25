// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Clock is a wall clock for managers that can be set at any moment. It is only
// for managers of [Cluster.WithClocks].
type Clock struct{ file string }

// WithClocks returns the same cluster, but its managers take a [Clock]: they are
// the real manager, built with another clock.
func (c *Cluster) WithClocks(t testing.TB) *Cluster {
	t.Helper()
	return c.WithManager(Build(t, "./test/fault/clock/manager"))
}

// NewClock makes a clock that shows a time.
func NewClock(t testing.TB, at time.Time) Clock {
	t.Helper()
	c := Clock{filepath.Join(t.TempDir(), "clock")}
	c.Set(t, at)
	return c
}

// Flag is the argument of the managers that go by it.
func (c Clock) Flag() string { return "--clock-file=" + c.file }

// Set sets the clock.
func (c Clock) Set(t testing.TB, to time.Time) {
	t.Helper()
	// In one step: the manager reads it at any moment.
	if err := os.WriteFile(c.file+".new", []byte(time.Until(to).String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.file+".new", c.file); err != nil {
		t.Fatal(err)
	}
}
