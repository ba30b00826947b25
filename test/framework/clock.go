// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Clock is a wall clock for managers that can be set at any moment. It is only
// for managers of [Cluster.WithClocks].
type Clock struct{ file string }

// buildClock sees to it that the manager with a [Clock] is built by one test at a
// time.
var buildClock sync.Mutex

// WithClocks returns the same cluster, but its managers take a [Clock]: they are
// the real manager, built with another clock, once for each cluster.
func (c *Cluster) WithClocks(t testing.TB) *Cluster {
	t.Helper()
	file := filepath.Join(filepath.Dir(c.Kubeconfig), "manager-with-clock")
	buildClock.Lock()
	defer buildClock.Unlock()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		buildAs(t, file, "./test/fault/clock/manager")
	}
	return c.WithManager(file)
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
