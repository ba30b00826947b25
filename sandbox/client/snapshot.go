// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"
)

// Snapshot saves all objects at a single revision to a file that only this user can read. The sandbox keeps
// running.
func (s *Sandbox) Snapshot(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "save", file)
	return err
}

// Restore restores all objects from a snapshot of this or another sandbox, with their UIDs and status.
// Watches see objects change, appear and disappear; programs that remember objects by UID should be
// restarted.
func (s *Sandbox) Restore(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "restore", file)
	return err
}

// Quiet waits until no object, other than Leases and Events, has been written for the duration while. The
// error after the timeout names the last write. With a timeout slightly longer than while, it asserts that
// nothing is written.
func (s *Sandbox) Quiet(ctx context.Context, while, timeout time.Duration) error {
	_, err := s.Run(ctx, "status", "--output=json", fmt.Sprint("--until-quiet=", while), fmt.Sprint("--timeout=", timeout))
	return err
}
