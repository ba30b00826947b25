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

// Clock is a wall clock for managers that a test can set at any time. Only managers from
// [Cluster.WithClocks] can use it.
type Clock struct {
	file   string
	stands bool
}

// buildClock serializes the builds of the manager with a [Clock].
var buildClock sync.Mutex

// WithClocks returns the same cluster with another manager binary: the real manager with a
// replaceable [Clock]. CLOCK_BIN names the binary; by default the binary is built once per cluster.
func (c *Cluster) WithClocks(t testing.TB) *Cluster {
	t.Helper()
	if built := os.Getenv("CLOCK_BIN"); built != "" {
		return c.WithManager(built)
	}
	file := filepath.Join(filepath.Dir(c.Kubeconfig), "manager-with-clock")
	buildClock.Lock()
	defer buildClock.Unlock()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		buildAs(t, file, "./test/fault/clock/manager")
	}
	return c.WithManager(file)
}

// NewClock returns a clock that is set to the given time and runs from there.
func NewClock(t testing.TB, at time.Time) Clock {
	t.Helper()
	c := Clock{file: filepath.Join(t.TempDir(), "clock")}
	c.Set(t, at)
	return c
}

// NewStandingClock returns a clock that stands still at the given time until it is set. A manager
// with a standing clock never misses a deadline because the machine is busy. The manager reads the
// clock once a second.
func NewStandingClock(t testing.TB, at time.Time) Clock {
	t.Helper()
	c := Clock{file: filepath.Join(t.TempDir(), "clock"), stands: true}
	c.Set(t, at)
	return c
}

// Going returns the same clock, which runs from the next time that it is set to.
func (c Clock) Going() Clock {
	c.stands = false
	return c
}

// Standing returns the same clock, which stands still at the next time that it is set to.
func (c Clock) Standing() Clock {
	c.stands = true
	return c
}

// Now returns the time that the clock shows.
func (c Clock) Now(t testing.TB) time.Time {
	t.Helper()
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	if c.stands {
		at, err := time.Parse(time.RFC3339Nano, string(text))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	offset, err := time.ParseDuration(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().Add(offset)
}

// Flag returns the manager's flag that selects the clock.
func (c Clock) Flag() string { return "--clock-file=" + c.file }

// Set sets the clock to a time. Managers notice it within a second.
func (c Clock) Set(t testing.TB, to time.Time) {
	t.Helper()
	text := time.Until(to).String()
	if c.stands {
		text = to.UTC().Format(time.RFC3339Nano)
	}
	// The file is replaced atomically because the manager may read it at any time.
	if err := os.WriteFile(c.file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.file+".new", c.file); err != nil {
		t.Fatal(err)
	}
}
