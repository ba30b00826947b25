// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership notifies components other than reconcilers when their manager becomes the
// leader. Reconcilers need no notification, because they run only in the leader.
package leadership

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// OnElected calls `start` once, when this manager is elected, or immediately if leader election is
// disabled. The manager's caches have synced before the call.
func OnElected(mgr manager.Manager, start func(context.Context)) error {
	return mgr.Add(onElected{mgr.Elected(), start})
}

type onElected struct {
	elected <-chan struct{}
	start   func(context.Context)
}

// Start implements [manager.Runnable].
func (e onElected) Start(ctx context.Context) error {
	select {
	case <-e.elected:
		e.start(ctx)
	case <-ctx.Done():
	}
	return nil
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable]. It returns false, because the
// runnable must also run in a manager that is not the leader, to wait for its election.
func (e onElected) NeedLeaderElection() bool { return false }
