// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"runtime/debug"
	"time"
)

// settled is how long after the cache is full the controllers have taken in what
// is in it.
const settled = 5 * time.Second

// giveBack gives the memory that reading all objects took back to the machine, once
// they are read. Left alone, the runtime would do so in the course of minutes, and a
// container's limit would have to allow for it.
type giveBack struct{}

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable]. It is
// called when the cache is full.
func (giveBack) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(settled):
		debug.FreeOSMemory()
	}
	return nil
}

// NeedLeaderElection implements
// [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable]: a standby
// reads all objects, too.
func (giveBack) NeedLeaderElection() bool { return false }
