// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership is how the parts of a manager that are not reconcilers learn that
// it leads. A reconciler need not ask: only the leader's run.
package leadership

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// OnElected calls start once, when this manager is elected, or right away if it takes
// part in no election. The manager's caches have synced by then.
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
