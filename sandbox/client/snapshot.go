// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"
)

// Snapshot saves all objects to a file that only this user can read. All objects are saved as they
// were at the same revision. The sandbox keeps running.
func (s *Sandbox) Snapshot(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "save", file)
	return err
}

// Restore restores all objects, with their UIDs and status, from a snapshot of this or another
// sandbox. Watches report the restored changes like any other changes. Restart programs that keep
// objects by UID, because a deleted object can exist again with the same UID.
func (s *Sandbox) Restore(ctx context.Context, file string) error {
	_, err := s.Run(ctx, "snapshot", "restore", file)
	return err
}

// Quiet waits until no object other than Leases and Events has been written for the duration
// "while". If the timeout passes first, Quiet returns an error that names the last write. With a
// timeout only slightly longer than "while", Quiet asserts that nothing is written.
func (s *Sandbox) Quiet(ctx context.Context, while, timeout time.Duration) error {
	_, err := s.Run(ctx, "status", "--output=json", fmt.Sprint("--until-quiet=", while), fmt.Sprint("--timeout=", timeout))
	return err
}
