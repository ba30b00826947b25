// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"
)

// Snapshot saves all objects, as of a single revision, to a file that only this user can read. The
// sandbox runs on.
func (s *Sandbox) Snapshot(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "save", file)
	return err
}

// Restore puts all objects back to their state in a snapshot of this sandbox or of another sandbox,
// with their UIDs and their status. Clients that watch the API server see objects that change, come
// and go; programs that remember objects by UID should be started again.
func (s *Sandbox) Restore(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "restore", file)
	return err
}

// Quiet waits until nothing has been written to any object for a while, but Leases and Events.
// The error after the timeout names the last write. With a timeout that is hardly longer than
// the while, it asserts that nothing writes.
func (s *Sandbox) Quiet(ctx context.Context, while, timeout time.Duration) error {
	_, err := s.Run(ctx, "status", "--output=json", fmt.Sprint("--until-quiet=", while), fmt.Sprint("--timeout=", timeout))
	return err
}
