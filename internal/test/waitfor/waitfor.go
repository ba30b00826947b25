// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waitfor waits, in tests, for what another goroutine brings about.
package waitfor

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience is how long is waited: so long that no machine is too busy for it.
const Patience = 2 * time.Minute

// interval is the time between two looks.
const interval = 2 * time.Millisecond

// Nil waits until a check has no error. If there always is one, the test ends, and says what
// was waited for and the error that the check has seen last.
func Nil(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	// The clean-up of a test may wait, too, when its context has ended already.
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), interval, Patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %s: %v", Patience, what, last)
	}
}
