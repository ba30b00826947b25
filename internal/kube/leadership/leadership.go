// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership notifies the parts of a manager that are not reconcilers when the manager
// becomes the leader. Reconcilers do not need it, because they run only in the leader.
package leadership

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// OnElected calls start once, when this manager is elected, or immediately if leader election
// is off. The manager's caches have synced by then.
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

// NeedLeaderElection implements [manager.LeaderElectionRunnable]: a standby waits.
func (e onElected) NeedLeaderElection() bool { return false }
