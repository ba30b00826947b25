// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// TB is the subset of testing.TB that this package uses.
type TB interface {
	Helper()
	Name() string
	Context() context.Context
	TempDir() string
	Setenv(key, value string)
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// New starts a sandbox for a single test, and stops it at the end of the test. [Shared] is faster
// for a test that only needs its own namespace.
func New(t TB, o Options) *Sandbox {
	t.Helper()
	s, err := Up(t.Context(), o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := s.Down(context.Background()); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// shared holds the sandbox that [Shared] returns in this process.
var shared struct {
	sync.Mutex
	options Options
	sandbox *Sandbox
	err     error
}

// Shared returns the sandbox that all tests of a package share. The first call starts the sandbox,
// which stops when the test process exits for any reason. All calls must pass the same options.
//
// Each test, whether parallel or not, should create its objects in its own [Sandbox.Namespace]. A
// test that changes other objects must call [Sandbox.RestoreAfter].
func Shared(t TB, o Options) *Sandbox {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.sandbox == nil && shared.err == nil {
		shared.options = o
		// The shared sandbox outlives the first test, so it must not depend on that test's context.
		shared.sandbox, shared.err = Up(context.WithoutCancel(t.Context()), o)
	}
	switch {
	case !reflect.DeepEqual(shared.options, o):
		t.Fatalf("the sandbox that the tests share was asked for with other options before, %+v, than now, %+v: use New for one of this test's own", shared.options, o)
	case shared.err != nil:
		t.Fatalf("the sandbox that the tests share: %v", shared.err)
	}
	return shared.sandbox
}

// noLabel matches the characters of a test name that are not allowed in a namespace name.
var noLabel = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceOf returns a unique namespace name for a test.
func namespaceOf(test string) string {
	name := noLabel.ReplaceAllString(strings.ToLower(test), "-")
	return strings.Trim(name[:min(len(name), 40)], "-") + "-" + strings.ToLower(rand.Text()[:6])
}

// Namespace creates a namespace for a test, and returns its name. At the end of the test, it
// deletes the namespace without waiting, because finalizers of an operator that no longer runs
// could block the deletion.
func (s *Sandbox) Namespace(t TB) string {
	t.Helper()
	name := namespaceOf(t.Name())
	if _, err := s.Kubectl(t.Context(), "", "create", "namespace", name); err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if _, err := s.Kubectl(context.Background(), "", "delete", "namespace", name, "--wait=false", "--ignore-not-found"); err != nil {
			t.Errorf("%v", err)
		}
	})
	return name
}

// RestoreAfter restores all objects to their current state at the end of the test. It fails in a
// parallel test, because the restore would also undo the changes of tests that run at the same
// time.
func (s *Sandbox) RestoreAfter(t TB) {
	t.Helper()
	// Call Setenv because it panics in parallel tests. Nothing reads the variable itself.
	t.Setenv("SANDBOX_RESTORED_AFTER", t.Name())
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := s.Snapshot(t.Context(), file); err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := s.Restore(context.Background(), file); err != nil {
			t.Errorf("%v", err)
		}
	})
}
