// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"
)

// interval is the time between two checks of a condition.
const interval = 50 * time.Millisecond

// Wait calls the function "check" until it returns nil. If the context is done or the timeout
// passes first, Wait returns an error that contains the given condition, a description of the
// expected state, and the last error from check.
func Wait(ctx context.Context, timeout time.Duration, condition string, check func() error) error {
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %s: %w", timeout, condition, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (the last check: %w)", condition, context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}
