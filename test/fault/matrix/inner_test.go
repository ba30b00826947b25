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

// innerTest is a test that may fail without failing the outer test: a manager without
// one of its safeguards is expected to fail.
type innerTest struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
}

// try runs an inner test with its cleanups, and returns its failures and its logs.
func try(t testing.TB, run func(testing.TB)) (failures, logs []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inner := &innerTest{TB: t, ctx: ctx}
	inner.do(func() { run(inner) })
	for len(inner.cleanups) > 0 {
		last := len(inner.cleanups) - 1
		cleanup := inner.cleanups[last]
		inner.cleanups = inner.cleanups[:last]
		inner.do(cleanup)
	}
	return inner.failures, inner.logs
}

// do calls a function that may end its goroutine.
func (t *innerTest) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (t *innerTest) Context() context.Context { return t.ctx }

func (t *innerTest) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *innerTest) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

func (t *innerTest) fail(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, strings.TrimSpace(text))
}

func (t *innerTest) log(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logs = append(t.logs, strings.TrimSpace(text))
}

func (t *innerTest) Logf(format string, args ...any) { t.log(fmt.Sprintf(format, args...)) }
func (t *innerTest) Log(args ...any)                 { t.log(fmt.Sprintln(args...)) }

func (t *innerTest) Errorf(format string, args ...any) { t.fail(fmt.Sprintf(format, args...)) }
func (t *innerTest) Error(args ...any)                 { t.fail(fmt.Sprintln(args...)) }
func (t *innerTest) Fail()                             { t.fail("failed") }
func (t *innerTest) FailNow() {
	t.Fail()
	runtime.Goexit()
}

func (t *innerTest) Fatalf(format string, args ...any) {
	t.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (t *innerTest) Fatal(args ...any) {
	t.fail(fmt.Sprintln(args...))
	runtime.Goexit()
}

func TestTrial(t *testing.T) {
	var order []string
	failures, logs := try(t, func(t testing.TB) {
		t.Log("a word")
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
	if want := []string{"a word"}; !slices.Equal(logs, want) {
		t.Errorf("logs %q, want %q", logs, want)
	}
	if want := []string{"second", "first"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}
