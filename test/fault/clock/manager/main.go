// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the Tidekeeper manager with a wall clock that can be set: its
// offset from the machine's clock is the current content of the file of --clock-file,
// for instance -2h30m. As when a real clock is set, the monotonic clock is not
// affected. If the content is a time, such as 2027-03-28T01:00:00Z, the clock stands still at
// it, and so does the monotonic clock: no time passes until the file says so.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	options := manager.NewOptions()
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	file := flags.String("clock-file", "", "`file` that says how far the wall clock is from the machine's, or the time at which it stands still")
	sets := options.Flags()
	for _, name := range sets.Order {
		flags.AddFlagSet(sets.FlagSets[name])
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	return manager.RunWithClock(ctrl.SetupSignalHandler(), options, wallClock{file: *file})
}

// wallClock is the machine's clock, set to another time. Its timers are the machine's:
// setting a clock does not affect them.
type wallClock struct {
	clock.RealClock
	file string
}

// Now implements [clock.PassiveClock].
func (c wallClock) Now() time.Time {
	text, err := os.ReadFile(c.file)
	if err != nil {
		panic(err)
	}
	now, err := read(strings.TrimSpace(string(text)))
	if err != nil {
		panic(fmt.Errorf("%s: %w", c.file, err))
	}
	return now
}

// read returns the time by a clock whose file has that text.
func read(text string) (time.Time, error) {
	// Without a monotonic reading, so that times of this clock differ by what it was set by.
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.Local(), nil
	}
	offset, err := time.ParseDuration(text)
	return set(time.Now(), offset), err
}

// Since implements [clock.PassiveClock].
func (c wallClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// set returns a time with the wall clock moved by an offset and an unchanged monotonic
// clock reading. Package time has no function for that, as Add moves both, so this
// writes the monotonic reading back to where time.Time stores it. main_test.go checks
// that it is stored there.
func set(t time.Time, offset time.Duration) time.Time {
	type layout struct {
		wall      uint64
		monotonic int64
		location  *time.Location
	}
	moved := t.Add(offset)
	(*layout)(unsafe.Pointer(&moved)).monotonic = (*layout)(unsafe.Pointer(&t)).monotonic
	return moved
}
