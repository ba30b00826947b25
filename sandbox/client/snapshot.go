// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"
)

// Snapshot saves all objects, as of a single revision, to a file that only this user can read. The
// sandbox keeps running.
func (s *Sandbox) Snapshot(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "save", file)
	return err
}

// Restore restores all objects, with their UIDs and status, from a snapshot of this or another
// sandbox. Watches report the restored changes like any other changes. Programs that keep objects
// by UID should be restarted.
func (s *Sandbox) Restore(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "restore", file)
	return err
}

// Quiet waits until no object other than Leases and Events has been written for the given time,
// "while". If the timeout passes first, the error names the last write. A timeout only slightly
// longer than "while" asserts that nothing is written.
func (s *Sandbox) Quiet(ctx context.Context, while, timeout time.Duration) error {
	_, err := s.Run(ctx, "status", "--output=json", fmt.Sprint("--until-quiet=", while), fmt.Sprint("--timeout=", timeout))
	return err
}
