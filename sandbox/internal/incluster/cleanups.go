// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"os"
)

// cleanups lists functions that undo the changes made for a program. When the program has exited,
// they are called in reverse order.
type cleanups struct{ list []func(context.Context) error }

// add adds a cleanup to the end of the list.
func (c *cleanups) add(cleanup func(context.Context) error) { c.list = append(c.list, cleanup) }

// background runs a function in a goroutine, and adds a cleanup that cancels the function's context
// and waits until the function returns.
func (c *cleanups) background(ctx context.Context, function func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		function(ctx)
		close(done)
	}()
	c.add(func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// run calls all cleanups, and prints a warning for each failure.
func (c *cleanups) run() {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for len(c.list) > 0 {
		last := len(c.list) - 1
		if err := c.list[last](ctx); err != nil {
			warn(err)
		}
		c.list = c.list[:last]
	}
}

// warn prints an error that does not prevent the program from running.
func warn(err error) { fmt.Fprintln(os.Stderr, "warning:", err) }
