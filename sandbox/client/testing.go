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

// TB is the part of testing.TB that this package uses: a *testing.T, or a *testing.B.
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

// New starts a sandbox for a single test, and stops it when the test has ended. A test that needs
// only a namespace of its own uses the [Shared] sandbox, which is there at once.
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

// shared is the sandbox of the tests of this process.
var shared struct {
	sync.Mutex
	options Options
	sandbox *Sandbox
	err     error
}

// Shared returns the sandbox that the tests of a package share. The first call starts it, and it
// stops with the process of the tests, however that ends. All calls must have the same options.
// Tests keep out of each other's way by [Sandbox.Namespace], also in parallel; a test that changes
// shared objects calls [Sandbox.RestoreAfter].
func Shared(t TB, o Options) *Sandbox {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.sandbox == nil && shared.err == nil {
		shared.options = o
		// It is there for longer than the test that is the first.
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

// noLabel matches characters that are allowed in the name of a test, and not in that of a
// namespace.
var noLabel = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceOf returns a new name for a namespace of a test.
func namespaceOf(test string) string {
	name := noLabel.ReplaceAllString(strings.ToLower(test), "-")
	return strings.Trim(name[:min(len(name), 40)], "-") + "-" + strings.ToLower(rand.Text()[:6])
}

// Namespace creates a namespace for a test, and returns its name. The namespace is deleted when the
// test has ended, without waiting: its objects may have finalizers of an operator that has stopped.
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

// RestoreAfter puts all objects back to their present state when the test has ended. Objects that
// other tests create meanwhile would be removed as well, so it fails in a parallel test.
func (s *Sandbox) RestoreAfter(t TB) {
	t.Helper()
	// This is refused in parallel tests, and has no other effect.
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
