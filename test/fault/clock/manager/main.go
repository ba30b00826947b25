// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the Tidekeeper manager with an adjustable wall clock. The file that
// --clock-file names contains the offset from the machine's clock, for instance -2h30m, and is read
// repeatedly. Setting the offset does not affect the monotonic clock, as when a real clock is set.
// If the file contains a time, such as 2027-03-28T01:00:00Z, both the wall clock and the monotonic
// clock stand still until the file changes.
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

// wallClock is the machine's clock set to another time. Its timers are the machine's timers, which
// are not affected by setting a clock.
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

// read returns the time that a clock file with the given content shows.
func read(text string) (time.Time, error) {
	// The time has no monotonic reading, so that differences between this clock's times follow the
	// file.
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.Local(), nil
	}
	offset, err := time.ParseDuration(text)
	return set(time.Now(), offset), err
}

// Since implements [clock.PassiveClock].
func (c wallClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// set returns t with the wall clock moved by offset and an unchanged monotonic clock reading.
// Package time has no function for that, because Add moves both, so set restores the monotonic
// reading in the field of time.Time that stores it. main_test.go checks that this field is the
// right one.
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
