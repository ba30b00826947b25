// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waitfor lets tests wait until other goroutines or processes have reached an expected
// state.
package waitfor

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience is the maximum time to wait. It is long enough for a heavily loaded machine.
const Patience = 2 * time.Minute

// interval is the time between two calls of a check.
const interval = 2 * time.Millisecond

// Nil waits until `check` returns nil. If `check` still fails after Patience, the test fails with
// the given description and the last error of `check`.
func Nil(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	// Tests also call Nil in their cleanup, when their context has already ended.
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), interval, Patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %s: %v", Patience, what, last)
	}
}
