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

// Wait calls check until it returns nil. If the context ends or the timeout passes first, it
// returns an error that contains the last error of check. The condition describes the expected
// state in the error.
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
