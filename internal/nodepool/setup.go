// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"strings"
	"time"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/retry"
)

// Options is what can be turned about node pools. Every field must be set.
type Options struct {
	// NodeConcurrency is how many nodes are written to at the same time.
	NodeConcurrency int
	// StatusInterval is the shortest time between two status writes that only
	// follow a pool's water level.
	StatusInterval time.Duration
	// NoExecuteShare is how many percent of a pool's nodes, and at least one,
	// a NoExecute taint may be emptying at a time.
	NoExecuteShare int
	// NoExecuteInterval is for how long at least a node counts as being
	// emptied.
	NoExecuteInterval time.Duration
	// Clock says what time it is.
	Clock clock.PassiveClock
}

// SetupWithManager adds the two controllers of node pools to the manager:
// "nodepool", whose keys are pools, and "nodepool-node", whose keys are nodes.
// The manager's cache must have the informers of NodePools, Nodes, Pods (with
// the index [index.PodNodeName]) and RuntimeClasses.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	f := newFleet()
	m, err := newMetrics(ctrlmetrics.Registry, f)
	if err != nil {
		return fmt.Errorf("node pools: register metrics: %w", err)
	}
	d, err := newFeed(context.Background(), mgr.GetCache(), f)
	if err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool-node").
		WatchesRawSource(d.nodeSource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.NodeConcurrency, RateLimiter: retry.Limiter[reconcile.Request]()}).
		Complete(retry.Conflicts(&nodeReconciler{client: mgr.GetClient(), fleet: f, feed: d, metrics: m, clock: options.Clock})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool").
		WithOptions(controller.Options{RateLimiter: retry.Limiter[reconcile.Request]()}).
		WatchesRawSource(d.poolSource()).
		Watches(&nodev1.RuntimeClass{}, handler.EnqueueRequestsFromMapFunc(poolOfRuntimeClass)).
		Complete(retry.Conflicts(&poolReconciler{
			client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("tidekeeper"),
			fleet: f, feed: d, metrics: m, clock: options.Clock, options: options, written: map[string]time.Time{},
		})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	return nil
}

// poolOfRuntimeClass returns the pool that a RuntimeClass is named for, be it
// its owner or in its way.
func poolOfRuntimeClass(_ context.Context, o client.Object) []reconcile.Request {
	pool, ok := strings.CutPrefix(o.GetName(), tidekeeperv1.RuntimeClassPrefix)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(pool)}
}
