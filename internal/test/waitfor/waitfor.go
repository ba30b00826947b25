// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waitfor waits, in tests, for results of other goroutines.
package waitfor

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience is the maximum time to wait, long enough for any busy machine.
const Patience = 2 * time.Minute

// interval is the time between two checks.
const interval = 2 * time.Millisecond

// Nil waits until check returns nil. If it never does, the test fails with the given
// description and the last error of check.
func Nil(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	// The cleanup of a test may wait, too, after its context has ended.
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), interval, Patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %s: %v", Patience, what, last)
	}
}
