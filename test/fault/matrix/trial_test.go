// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// trial is a test that may fail without failing the one that it is part of: a
// manager without one of its safeguards is expected to.
type trial struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// try runs a trial with its cleanups, and returns what it failed with.
func try(t testing.TB, run func(testing.TB)) (failures []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inner := &trial{TB: t, ctx: ctx}
	inner.do(func() { run(inner) })
	for len(inner.cleanups) > 0 {
		last := len(inner.cleanups) - 1
		cleanup := inner.cleanups[last]
		inner.cleanups = inner.cleanups[:last]
		inner.do(cleanup)
	}
	return inner.failures
}

// do calls a function that may end its goroutine.
func (t *trial) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (t *trial) Context() context.Context { return t.ctx }

func (t *trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

func (t *trial) fail(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, strings.TrimSpace(text))
}

// Logf keeps what is logged with the failures, which is when it matters.
func (t *trial) Logf(format string, args ...any) { t.fail(fmt.Sprintf(format, args...)) }
func (t *trial) Log(args ...any)                 { t.fail(fmt.Sprintln(args...)) }

func (t *trial) Errorf(format string, args ...any) { t.fail(fmt.Sprintf(format, args...)) }
func (t *trial) Error(args ...any)                 { t.fail(fmt.Sprintln(args...)) }
func (t *trial) Fail()                             { t.fail("failed") }
func (t *trial) FailNow() {
	t.Fail()
	runtime.Goexit()
}

func (t *trial) Fatalf(format string, args ...any) {
	t.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (t *trial) Fatal(args ...any) {
	t.fail(fmt.Sprintln(args...))
	runtime.Goexit()
}

func TestTrial(t *testing.T) {
	var order []string
	failures := try(t, func(t testing.TB) {
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() {
			order = append(order, "second")
			t.Fatal("in a cleanup")
		})
		t.Errorf("one %d", 1)
		fatal := t.Fatalf
		fatal("two")
		order = append(order, "after Fatal")
	})
	if want := []string{"one 1", "two", "in a cleanup"}; !slices.Equal(failures, want) {
		t.Errorf("failures %q, want %q", failures, want)
	}
	if want := []string{"second", "first"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}
