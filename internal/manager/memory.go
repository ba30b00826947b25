// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"runtime/debug"
	"time"
)

// initialSyncGrace is how long the controllers need to process the initial sync of
// the cache.
const initialSyncGrace = 5 * time.Second

// memoryReleaser returns the memory that the initial lists took to the operating
// system, once they are processed. Left alone, the runtime would do so over minutes,
// and a container's limit would have to allow for it. GOMEMLIMIT does not serve: it
// returns memory only near a limit, which would have to be chosen for the size of the
// cluster, and at the cost of more garbage collections ever after.
type memoryReleaser struct{}

// Start implements [sigs.k8s.io/controller-runtime/pkg/manager.Runnable]. The manager
// calls it once the cache has synced.
func (memoryReleaser) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(initialSyncGrace):
		debug.FreeOSMemory()
	}
	return nil
}

// NeedLeaderElection implements
// [sigs.k8s.io/controller-runtime/pkg/manager.LeaderElectionRunnable]: a standby
// lists all objects, too.
func (memoryReleaser) NeedLeaderElection() bool { return false }
