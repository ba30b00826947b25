// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Owner is a process that a sandbox must not outlive. A pidfd (a file descriptor that refers to a
// process) identifies it, because another process may receive its ID after it has exited.
type Owner struct {
	// PID is the process ID of the owner.
	PID int
	fd  int
}

// FindOwner returns the running process with the given ID as an owner.
func FindOwner(pid int) (*Owner, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("--owner %d: %w: give the ID of a process that runs", pid, err)
	}
	return &Owner{PID: pid, fd: fd}, nil
}

// ended reports whether the owner has exited. It returns false if there is no owner.
func (o *Owner) ended() bool {
	if o == nil {
		return false
	}
	// A pidfd becomes readable when its process exits.
	fds := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// wait calls the function "then" after the owner has exited, unless the context is done first.
func (o *Owner) wait(ctx context.Context, then func()) {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for !o.ended() {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
	then()
}
