// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// busyWithout returns counters of processors that idle for a share of the time, in which a window
// passes between two readings.
func busyWithout(idle *atomic.Uint64) func() (processorTimes, error) {
	var now processorTimes
	return func() (processorTimes, error) {
		now.total += 100
		now.idle += idle.Load()
		return now, nil
	}
}

// enters reports whether a second suite may begin within a time, and ends the attempt.
func enters(t *testing.T, a *admission, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	a.enter(ctx, time.Millisecond)
	return ctx.Err() == nil
}

// TestAdmission checks that one suite begins at once, and another one only when the processors idle
// or the first has ended.
func TestAdmission(t *testing.T) {
	t.Parallel()
	var idle atomic.Uint64
	admitting := func() *admission { return &admission{times: busyWithout(&idle)} }
	a := admitting()
	if !enters(t, a, time.Minute) {
		t.Fatal("the first suite waits")
	}
	idle.Store(34)
	if enters(t, a, 50*time.Millisecond) {
		t.Error("a second suite begins while processors idle for 34 % of the time")
	}
	idle.Store(35)
	if !enters(t, admittedTo(t, admitting()), time.Minute) {
		t.Error("a second suite waits while processors idle for 35 % of the time")
	}

	idle.Store(0)
	a = admittedTo(t, admitting())
	began := make(chan struct{})
	go func() { a.enter(t.Context(), time.Millisecond); close(began) }()
	a.leave()
	select {
	case <-began:
	case <-time.After(time.Minute):
		t.Error("a suite waits although no other runs any longer")
	}

	a = admittedTo(t, admitting())
	a.until = time.Now().Add(50 * time.Millisecond)
	if !enters(t, a, time.Minute) || time.Now().Before(a.until) {
		t.Error("a suite waits although it is too late, or does not wait until then")
	}

	a = admittedTo(t, admitting())
	a.times = func() (processorTimes, error) { return processorTimes{}, errors.New("no such file") }
	if !enters(t, a, time.Minute) {
		t.Error("a second suite waits where the processors cannot be observed")
	}
	a.times = nil
	if !enters(t, a, time.Minute) {
		t.Error("a second suite waits although suites begin in any case")
	}
}

// admittedTo returns the admission after a first suite has begun.
func admittedTo(t *testing.T, a *admission) *admission {
	t.Helper()
	a.enter(t.Context(), time.Millisecond)
	return a
}

func TestProcessorTimes(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]processorTimes{
		"cpu  10 20 30 40 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n": {idle: 65, total: 126},
		"cpu 1 2 3 4 5 6 7 8": {idle: 11, total: 36},
	} {
		if got, err := parseProcessorTimes(stat); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", stat, got, err, want)
		}
	}
	for _, stat := range []string{"", "cpu", "cpu 1 2 3 4 5 6 7", "cpu 1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"} {
		if got, err := parseProcessorTimes(stat); err == nil {
			t.Errorf("%q: got %v, want an error", stat, got)
		}
	}
	before := processorTimes{idle: 100, total: 200}
	for now, want := range map[processorTimes]float64{
		{idle: 150, total: 300}: 0.5, {idle: 100, total: 300}: 0, {idle: 200, total: 300}: 1,
		before: 0, {idle: 1, total: 2}: 0, {idle: 99, total: 300}: 0,
	} {
		if got := now.idleSince(before); got != want {
			t.Errorf("from %v to %v: idle for %v of the time, want %v", before, now, got, want)
		}
	}
}
